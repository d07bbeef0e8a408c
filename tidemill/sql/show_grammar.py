"""SHOW and DESCRIBE."""

from __future__ import annotations

from tidemill.sql import statements as s
from tidemill.sql.catalog_grammar import CatalogGrammar
from tidemill.sql.lexer import Token

# Longest first: SHOW CURRENT CATALOG before anything one word long.
_KINDS = sorted(((tuple(kind.value.split()), kind) for kind in s.ShowKind), key=lambda k: -len(k[0]))
_WITH_PATH = frozenset(
    {
        s.ShowKind.CREATE_TABLE,
        s.ShowKind.CREATE_VIEW,
        s.ShowKind.CREATE_CATALOG,
        s.ShowKind.PARTITIONS,
    }
)
_WITH_SOURCE = frozenset(
    {
        s.ShowKind.TABLES,
        s.ShowKind.VIEWS,
        s.ShowKind.DATABASES,
        s.ShowKind.FUNCTIONS,
        s.ShowKind.USER_FUNCTIONS,
        s.ShowKind.COLUMNS,
    }
)
_WITH_PATTERN = _WITH_SOURCE | {s.ShowKind.CATALOGS}
_WITH_ILIKE = frozenset(
    {s.ShowKind.CATALOGS, s.ShowKind.DATABASES, s.ShowKind.FUNCTIONS, s.ShowKind.USER_FUNCTIONS}
)
_UNSUPPORTED = ("PROCEDURES", "MODELS", "MATERIALIZED", "CONNECTIONS")


class ShowGrammar(CatalogGrammar):
    def show(self, token: Token) -> s.Statement:
        """Behind SHOW."""
        if self.at_any(*_UNSUPPORTED):
            self.refuse(f"SHOW {self.current.upper}")
        kind = self._show_kind()
        path = self._show_path(kind)
        pattern, negated, insensitive = self._pattern_filter(kind)
        partition = self._partition_filter() if kind is s.ShowKind.PARTITIONS else ()
        return s.Show(
            kind=kind,
            path=path,
            pattern=pattern,
            negated=negated,
            case_insensitive=insensitive,
            partition=partition,
            text=self.text_since(token),
            position=token.position,
        )

    def _show_kind(self) -> s.ShowKind:
        for words, kind in _KINDS:
            if self.take(*words):
                return kind
        self.fail(*sorted({kind.value for kind in s.ShowKind}))

    def _show_path(self, kind: s.ShowKind) -> s.Path:
        if kind in _WITH_PATH:
            return self.names()
        if kind is s.ShowKind.COLUMNS:
            self.expect_any("FROM", "IN")
            return self.names()
        if kind in _WITH_SOURCE and self.take_any("FROM", "IN"):
            return self.names()
        return ()

    def _pattern_filter(self, kind: s.ShowKind) -> tuple[str | None, bool, bool]:
        if kind not in _WITH_PATTERN:
            return None, False, False
        negated = self.take("NOT")
        word = self.take_any("LIKE", *(("ILIKE",) if kind in _WITH_ILIKE else ()))
        if not word:
            if negated:
                self.fail("LIKE", "ILIKE")
            return None, False, False
        return self.string(), negated, word == "ILIKE"

    def _partition_filter(self) -> s.Options:
        if not self.take("PARTITION"):
            return ()
        return tuple(self.wrapped(self._partition_value))

    def _partition_value(self) -> tuple[str, str]:
        name = self.identifier().name
        self.expect("=")
        first = self.current
        self.expression()
        return name, self.text_since(first).strip("'")

    def describe(self, token: Token) -> s.Statement:
        """Behind DESCRIBE or DESC."""
        for words in ("CATALOG", "DATABASE", "FUNCTION", "JOB", "MODEL"):
            if self.at(words) and self.peek().upper not in ("", ".", ";", "<EOF>"):
                self.refuse(f"DESCRIBE {words}")
        extended = self.take("EXTENDED")
        path = self.names()
        return s.Describe(path=path, extended=extended, text=self.text_since(token), position=token.position)
