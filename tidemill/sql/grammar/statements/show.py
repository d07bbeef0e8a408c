"""SHOW and DESCRIBE."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.sql import statements as s
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.statements import clauses
from tidemill.sql.grammar.statements.savepoints import describe_savepoint, show_savepoints
from tidemill.sql.grammar.trees import Trees
from tidemill.sql.lexer import Kind, Token

# Longest first: SHOW CURRENT CATALOG before anything one word long.
_KINDS = sorted(((tuple(kind.value.split()), kind) for kind in s.ShowKind), key=lambda k: -len(k[0]))
_WITH_PATH = frozenset(
    {
        s.ShowKind.CREATE_TABLE,
        s.ShowKind.CREATE_VIEW,
        s.ShowKind.CREATE_CATALOG,
        s.ShowKind.CREATE_MODEL,
        s.ShowKind.CREATE_MATERIALIZED_TABLE,
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
        s.ShowKind.MODELS,
        s.ShowKind.MATERIALIZED_TABLES,
        s.ShowKind.PROCEDURES,
    }
)
_WITH_PATTERN = _WITH_SOURCE | {s.ShowKind.CATALOGS}
_WITH_ILIKE = frozenset(
    {
        s.ShowKind.CATALOGS,
        s.ShowKind.DATABASES,
        s.ShowKind.FUNCTIONS,
        s.ShowKind.USER_FUNCTIONS,
        s.ShowKind.PROCEDURES,
    }
)


@dataclass(frozen=True, slots=True)
class Shows:
    cursor: Cursor
    trees: Trees

    def show(self, token: Token) -> s.Statement:
        """Behind SHOW."""
        if self.cursor.at("CONNECTIONS"):
            self.cursor.refuse("SHOW CONNECTIONS")
        if self.cursor.at("SAVEPOINTS"):
            return show_savepoints(self.cursor, token)
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
            text=self.cursor.text_since(token),
            position=token.position,
        )

    def _show_kind(self) -> s.ShowKind:
        for words, kind in _KINDS:
            if self.cursor.take(*words):
                return kind
        self.cursor.fail(*sorted({kind.value for kind in s.ShowKind}))

    def _show_path(self, kind: s.ShowKind) -> s.Path:
        if kind in _WITH_PATH:
            return self.cursor.names()
        if kind is s.ShowKind.COLUMNS:
            self.cursor.expect_any("FROM", "IN")
            return self.cursor.names()
        if kind in _WITH_SOURCE and self.cursor.take_any("FROM", "IN"):
            return self.cursor.names()
        return ()

    def _pattern_filter(self, kind: s.ShowKind) -> tuple[str | None, bool, bool]:
        if kind not in _WITH_PATTERN:
            return None, False, False
        negated = self.cursor.take("NOT")
        word = self.cursor.take_any("LIKE", *(("ILIKE",) if kind in _WITH_ILIKE else ()))
        if not word:
            if negated:
                self.cursor.fail("LIKE", "ILIKE")
            return None, False, False
        return self.cursor.string(), negated, word == "ILIKE"

    def _partition_filter(self) -> s.Options:
        return clauses.partition(self.cursor) if self.cursor.at("PARTITION") else ()

    def describe(self, token: Token) -> s.Statement:
        """Behind DESCRIBE or DESC."""
        if self.cursor.at("JOB") and self.cursor.peek().kind is Kind.STRING:
            self.cursor.advance()
            job_id = self.cursor.string()
            return s.DescribeJob(job_id=job_id, text=self.cursor.text_since(token), position=token.position)
        if self.cursor.at("SAVEPOINT") and self.cursor.peek().kind is Kind.STRING:
            return describe_savepoint(self.cursor, token)
        if self.cursor.peek().upper not in ("", ".", ";", "<EOF>"):
            if self.cursor.at_any("DATABASE", "JOB"):
                self.cursor.refuse(f"DESCRIBE {self.cursor.current.upper}")
            word = self.cursor.take_any("CATALOG", "FUNCTION", "MODEL")
            if word:
                return self._describe_other(token, word)
        extended = self.cursor.take("EXTENDED")
        path = self.cursor.names()
        text = self.cursor.text_since(token)
        return s.Describe(path=path, extended=extended, text=text, position=token.position)

    def _describe_other(self, token: Token, word: str) -> s.Statement:
        extended = self.cursor.take("EXTENDED")
        if word == "CATALOG":
            name = self.cursor.identifier().name
            text = self.cursor.text_since(token)
            return s.DescribeCatalog(name=name, extended=extended, text=text, position=token.position)
        path = self.cursor.names()
        text = self.cursor.text_since(token)
        if word == "MODEL":
            return s.DescribeModel(path=path, extended=extended, text=text, position=token.position)
        return s.DescribeFunction(path=path, extended=extended, text=text, position=token.position)
