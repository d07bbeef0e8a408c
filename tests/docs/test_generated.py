"""Generated pages are what the generator writes now; links lead somewhere; every page can be found."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT

PAGES = sorted((ROOT / "docs").rglob("*.md"))
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
    ["README.md", "CONTRIBUTING.md", "bench/notes.md", *(str(p.relative_to(ROOT)) for p in PAGES)],
)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for link in _LINK.findall(path.read_text(encoding="utf-8")):
        assert (path.parent / link).exists(), f"{page} links to {link}"


def test_every_page_is_listed() -> None:
    """In the overview and on the site; a decision in the index of the decisions."""
    overview, site = (ROOT / "docs/index.md").read_text("utf-8"), (ROOT / "mkdocs.yml").read_text("utf-8")
    decisions = (ROOT / "docs/decisions/README.md").read_text("utf-8")
    for page in PAGES:
        if page.parent.name == "decisions" and page.name != "README.md":
            assert f"({page.name})" in decisions, page.name
        elif page.name != "index.md":
            name = str(page.relative_to(ROOT / "docs"))
            assert f"({name})" in overview, name
            assert f": {name}\n" in site, name
