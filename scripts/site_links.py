"""A hook of mkdocs: links of the pages work on the site as they do in the repository.

Pages outside of docs/ (``OUTSIDE``) become pages of the site. A link to any other file of the repository
becomes text: ``[store](../tidemill/state/store.py)`` gives ``store (`tidemill/state/store.py`)``. A link to a
file that does not exist stays as it is, and ``mkdocs build --strict`` fails at it.
"""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = ("CONTRIBUTING.md", "bench/notes.md")
_LINK = re.compile(r"\[([^]]+)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for page in OUTSIDE:
        files.append(File.generated(config, page, content=(ROOT / page).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    source = page.file.src_uri
    place = dirname(source if source in OUTSIDE else f"docs/{source}")

    def put(link: re.Match[str]) -> str:
        text, target, anchor = link[1], normpath(join(place, link[2])), link[3] or ""
        uri = target if target in OUTSIDE else target.removeprefix("docs/")
        if files.get_file_from_path(uri) is not None:
            return f"[{text}]({relpath(uri, dirname(source) or '.')}{anchor})"
        if not (ROOT / target).exists():
            return link[0]
        return f"`{target}`" if target.endswith(text.strip("/")) else f"{text} (`{target}`)"

    parts = _FENCE.split(markdown)
    return "".join(part if part.startswith("```") else _LINK.sub(put, part) for part in parts)
