"""One line about the running job, rewritten in place; shown on terminals only."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self, TextIO

from tidemill.runtime.progress import EpochProgress

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class ProgressLine:
    """``show`` is called by job threads after each epoch."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._active = stream.isatty()
        self._lock = threading.Lock()
        self._rows = 0
        self._shown = False

    def show(self, progress: EpochProgress) -> None:
        if not self._active:
            return
        with self._lock:
            self._rows += progress.rows_in
            self._stream.write("\r\x1b[2K" + line(progress, self._rows))
            self._stream.flush()
            self._shown = True

    def clear(self) -> None:
        """Takes the line off the screen, before something else is written."""
        with self._lock:
            if self._shown:
                self._stream.write("\r\x1b[2K")
                self._stream.flush()
                self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()


def line(progress: EpochProgress, total: int) -> str:
    """``epoch 12 | 1,200,000 rows in (99,812/s) | 10 out | state 1,000 rows, 24.0 KiB | lag 0.4 s``."""
    return (
        f"epoch {progress.epoch} | {total:,} rows in ({progress.rate:,.0f}/s) | {progress.rows_out:,} out | "
        f"state {progress.state_rows:,} rows, {_size(progress.state_bytes)} | lag {progress.seconds:.1f} s"
    )


def _size(count: float) -> str:
    for unit in _UNITS[:-1]:
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} {_UNITS[-1]}"
