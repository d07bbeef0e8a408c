"""Long results one screen at a time: through ``$PAGER``, or ``less`` where there is one."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence

# -S cuts long lines (arrow keys move sideways), -F ends where all fits, -X leaves the text on the screen.
_LESS = "less -SFX"


class Pager:
    """For a terminal only; an empty ``$PAGER`` is none."""

    def __init__(self) -> None:
        given = os.environ.get("PAGER")
        self._command = shlex.split(_LESS if given is None and shutil.which("less") else given or "")

    def show(self, lines: Sequence[str]) -> bool:
        """Whether the lines were shown; False where they fit the screen, or the pager does not run."""
        if not self._command or len(lines) < shutil.get_terminal_size().lines - 2:
            return False
        try:
            subprocess.run(self._command, input="\n".join(lines) + "\n", text=True, check=False)
        except OSError:
            return False
        return True
