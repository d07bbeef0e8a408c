"""Completion for the shell: keywords, statement starts, tables, columns, functions, options."""

from __future__ import annotations

import re
from collections.abc import Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from tidemill.catalog.table import CatalogTable
from tidemill.config import registry as options
from tidemill.session.context import SessionContext
from tidemill.sql.reserved import RESERVED

_WORD = re.compile(r"[\w.$-]*$")
_FUNCTION = re.compile(r"[A-Z_][A-Z0-9_]*")


class SqlCompleter(Completer):
    """Offers what the session knows; a word in lower case gets keywords in lower case."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        match = _WORD.search(document.text_before_cursor)
        word = match.group() if match else ""
        if not word:
            return
        for text, kind in self._candidates(word):
            if text.lower().startswith(word.lower()) and text != word:
                yield Completion(text, start_position=-len(word), display_meta=kind)

    def _candidates(self, word: str) -> Iterator[tuple[str, str]]:
        catalogs = self._context.catalogs
        for path in catalogs.paths(catalogs.current_catalog, catalogs.current_database):
            yield path.name, "table"
            entry = catalogs.find(path)
            if isinstance(entry, CatalogTable):
                yield from ((c.name, f"column of {path.name}") for c in entry.columns)
        upper = not word.islower()
        for name in self._context.function_names():
            if _FUNCTION.fullmatch(name):
                yield (name if upper else name.lower()) + "(", "function"
        for keyword in sorted(RESERVED):
            yield (keyword if upper else keyword.lower()), ""
        yield from ((key, "option") for key in options.BY_KEY)
