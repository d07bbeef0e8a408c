"""INSERT and sets of them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tidemill.sql import statements as s
from tidemill.sql.grammar.cursor import Cursor, at_query
from tidemill.sql.grammar.hints import hints
from tidemill.sql.grammar.trees import Trees
from tidemill.sql.lexer import Token

_CONFLICTS = ("NOTHING", "ERROR", "DEDUPLICATE")


@dataclass(frozen=True, slots=True)
class Inserts:
    cursor: Cursor
    trees: Trees

    def insert(self, token: Token) -> s.Insert:
        overwrite = self.cursor.expect_any("INTO", "OVERWRITE") == "OVERWRITE"
        target_token = self.cursor.current
        target = self.cursor.names()
        hints = self._target_options()
        partition = self._partition()
        columns = self.cursor.name_list() if self.cursor.at("(") and not at_query(self.cursor) else ()
        partition = partition or self._partition()
        query = self.trees.query()
        conflict = self._conflict()
        return s.Insert(
            target=target,
            target_position=target_token.position,
            query=query,
            columns=columns,
            partition=partition,
            overwrite=overwrite,
            conflict=conflict,
            hints=hints,
            text=self.cursor.text_since(token),
            position=token.position,
        )

    def one_or_more(self) -> s.Insert | s.StatementSet:
        """INSERT, or STATEMENT SET BEGIN ... END, each with EXECUTE before it or without."""
        self.cursor.take("EXECUTE")
        first = self.cursor.current
        if self.cursor.expect_any("INSERT", "STATEMENT") == "INSERT":
            return self.insert(first)
        self.cursor.expect("SET", "BEGIN")
        return self.members(first)

    def _target_options(self) -> s.Options:
        target_hints = hints(self.cursor)
        return tuple(option for hint in target_hints if hint.name == "OPTIONS" for option in hint.options)

    def _partition(self) -> tuple[tuple[str, exp.Expression | None], ...]:
        return tuple(self.cursor.wrapped(self._partition_pair)) if self.cursor.take("PARTITION") else ()

    def _partition_pair(self) -> tuple[str, exp.Expression | None]:
        name = self.cursor.identifier().name
        return name, self.trees.expression() if self.cursor.take("=") else None

    def _conflict(self) -> str:
        if not self.cursor.take("ON", "CONFLICT"):
            return ""
        self.cursor.expect("DO")
        return self.cursor.expect_any(*_CONFLICTS)

    def members(self, token: Token) -> s.StatementSet:
        """The INSERTs of a statement set, to its END."""
        inserts: list[s.Insert] = []
        while not (inserts and self.cursor.take("END")):
            first = self.cursor.current
            self.cursor.take("EXECUTE")
            if self.cursor.expect_any("INSERT", "UPSERT") == "UPSERT":
                self.cursor.refuse("UPSERT INTO", self.cursor.previous)
            inserts.append(self.insert(first))
            self.cursor.expect(";")
        text = self.cursor.text_since(token)
        return s.StatementSet(inserts=tuple(inserts), text=text, position=token.position)
