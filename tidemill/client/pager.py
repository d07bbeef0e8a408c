"""Long results one screen at a time: through ``$PAGER``, or ``less`` where there is one."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice

# -S cuts long lines (arrow keys move sideways), -F ends where all fits, -X leaves the text on the screen.
_LESS = "less -SFX"


class Pager:
    """For a terminal only; an empty ``$PAGER`` is none."""

    def __init__(self) -> None:
        given = os.environ.get("PAGER")
        self._command = shlex.split(_LESS if given is None and shutil.which("less") else given or "")

    def show(self, lines: Iterator[str]) -> Iterator[str]:
        """What is left for others to show: nothing, or all ``lines`` where they fit the screen or the pager
        does not run. It gets them as it asks for them, and may be left before the last one."""
        screen = max(shutil.get_terminal_size().lines - 2, 0)
        head = list(islice(lines, screen)) if self._command else []
        if not self._command or len(head) < screen:
            return chain(head, lines)
        try:
            process = subprocess.Popen(self._command, stdin=subprocess.PIPE, text=True)
        except OSError:
            return chain(head, lines)
        with suppress(BrokenPipeError), process:
            assert process.stdin is not None
            process.stdin.writelines(f"{line}\n" for line in chain(head, lines))
        return iter(())
