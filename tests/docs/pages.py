"""Markdown pages with code: their fenced blocks in order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "/tmp/tidemill"
BROKER = "127.0.0.1:9092"
"""Of Kafka, in the pages that talk to one."""
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; ``line`` is where its fence stands in the page."""

    language: str
    text: str
    line: int


def pages() -> list[Path]:
    """The README and all pages of docs/ that have SQL, Python or shell in them."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [p for p in found if any(b.language in ("sql", "python") for b in blocks(p))]


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m[1], m[2], text.count("\n", 0, m.start()) + 1) for m in _FENCE.finditer(text)]
