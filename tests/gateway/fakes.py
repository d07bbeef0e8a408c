"""A gateway whose statements run no SQL: what they do, the test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidemill.config.option import Configuration
from tidemill.gateway.api import ResultInfo
from tidemill.gateway.service.catalog import SessionCatalog
from tidemill.gateway.service.operation import Control, Outcome
from tidemill.gateway.service.pages import Pages
from tidemill.gateway.service.service import Gateway
from tidemill.session.context import SessionContext
from tidemill.types.logical import BIGINT, Field

SCHEMA = pa.schema([("n", pa.int64())])
INFO = ResultInfo(fields=(Field("n", BIGINT),), is_query=True, result_kind="SUCCESS_WITH_CONTENT")


def pages(
    folder: Path, *, memory: int = 1 << 20, ahead: int = 1 << 20, keep: bool = True, durable: bool = False
) -> Pages:
    return Pages(
        schema=SCHEMA,
        folder=str(folder / "result"),
        memory=memory,
        ahead=ahead,
        keep=keep,
        durable=durable,
    )


def numbers(start: int, end: int) -> pa.Table:
    return pa.table({"n": list(range(start, end))}, schema=SCHEMA)


@dataclass
class Scripted:
    """``scripts``: what a statement does, by its text; others give one row at once."""

    folder: Path
    scripts: Mapping[str, Callable[[Control], None]] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    given: Mapping[str, str] = field(default_factory=dict)

    def run(self, text: str, options: Mapping[str, str], control: Control) -> Outcome:
        script = self.scripts.get(text)
        if script is not None:
            script(control)
        self.ran.append(text)
        made = pages(self.folder)
        made.put(numbers(0, 3))
        made.finish()
        return Outcome(INFO, made)

    def configure(self, text: str, control: Control) -> Outcome:
        return self.run(text, {}, control)

    def options(self) -> Mapping[str, str]:
        return self.given

    def snapshot(self) -> dict[str, Any]:
        return {"given": dict(self.given)}

    def changed(self) -> bool:
        return False

    def catalog(self) -> SessionCatalog:
        return SessionCatalog(SessionContext())

    def complete(self, text: str, position: int) -> list[str]:
        return [text[:position]]


@dataclass
class Stopwatch:
    """A clock that a test sets."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def gateway(
    folder: Path, scripts: Mapping[str, Callable[[Control], None]] | None = None, **options: str
) -> tuple[Gateway, list[Scripted]]:
    """Option keys with ``__`` for dots, ``_`` for dashes; beside it the statements of its sessions."""
    made: list[Scripted] = []

    def new(properties: Mapping[str, str], user: str) -> Scripted:
        made.append(Scripted(folder, scripts or {}, given=dict(properties)))
        return made[-1]

    keys = {k.replace("__", ".").replace("_", "-"): v for k, v in options.items()}
    return Gateway(config=Configuration(keys), new_session=new), made


@dataclass
class Gate:
    """A statement that waits: it tells when it runs, and ends when it is let, or stopped."""

    running: threading.Event = field(default_factory=threading.Event)
    let: threading.Event = field(default_factory=threading.Event)
    stopped: bool = False

    def __call__(self, control: Control) -> None:
        control.stop_with(self._stop)
        self.running.set()
        assert self.let.wait(60)
        if self.stopped:
            raise InterruptedError("it was given up")

    def _stop(self) -> None:
        self.stopped = True
        self.let.set()
