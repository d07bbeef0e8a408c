"""Generated pages are what the generator writes now; links between pages lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT

_LINK = re.compile(r"\]\(([^)#:]+?)(?:#[^)]*)?\)")


def test_generated_pages_are_not_stale() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "generate_docs.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "page",
    ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in sorted((ROOT / "docs").glob("*.md")))],
)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for link in _LINK.findall(path.read_text(encoding="utf-8")):
        assert (path.parent / link).exists(), f"{page} links to {link}"
