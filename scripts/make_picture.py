"""Draws docs/images/changelog.svg: the first part of the demo, as it ran.

python scripts/make_picture.py
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from tidemill.client import demo

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "changelog.svg"
ROWS = 30_000
EPOCHS = 3


# The fonts would be fetched from elsewhere; any monospaced one does.
_FONT = re.compile(r"@font-face \{.*?\}", re.DOTALL)


def main() -> int:
    console = Console(record=True, width=84, highlight=False, force_terminal=True)
    with tempfile.TemporaryDirectory(prefix="tidemill-demo-") as folder:
        demo.write_visits(Path(folder) / "visits.csv", ROWS)
        totals = demo.show_changelog(console, demo.session(folder, ROWS, EPOCHS), ROWS, EPOCHS)
        demo.show_table(console, "The table after the last epoch", totals)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    drawn = console.export_svg(title="make demo")
    PICTURE.write_text(_FONT.sub("", drawn), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
