"""MATCH_RECOGNIZE: read whole, so that what refuses it can say what it is."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.nested import Nested
from tidemill.sql.grammar.ordering import Ordering
from tidemill.sql.lexer import Kind
from tidemill.sql.positions import place


@dataclass(frozen=True, slots=True)
class Matching:
    cursor: Cursor
    nested: Nested
    ordering: Ordering

    def match_recognize(self, source: exp.Expression) -> exp.MatchRecognize:
        """``this`` is the input relation; ``pattern`` the pattern's text between its parentheses.

        ``measures`` are exp.Alias, ``define`` exp.Alias(this=condition, alias=symbol), ``rows`` and
        ``after`` the words as written; WITHIN's interval is kept in ``within``.
        """
        self.cursor.expect("(")
        partition = self.ordering.partition_by()
        order = self.ordering.order_by()
        measures = self.cursor.separated(self._measure) if self.cursor.take("MEASURES") else []
        rows = self._rows()
        after = self._after()
        self.cursor.expect("PATTERN")
        pattern = self._pattern()
        within = self.nested.expression() if self.cursor.take("WITHIN") else None
        if self.cursor.at("SUBSET"):
            self.cursor.refuse("SUBSET in MATCH_RECOGNIZE")
        self.cursor.expect("DEFINE")
        define = self.cursor.separated(self._definition)
        self.cursor.expect(")")
        return exp.MatchRecognize(
            this=source,
            partition_by=partition,
            order=order,
            measures=measures,
            rows=rows,
            after=after,
            pattern=exp.Var(this=pattern),
            within=within,
            define=define,
        )

    def _measure(self) -> exp.Expression:
        token = self.cursor.current
        semantics = self.cursor.take_any("FINAL", "RUNNING")
        value = self.nested.expression()
        self.cursor.expect("AS")
        node = exp.Alias(this=value, alias=self.cursor.identifier())
        node.meta["semantics"] = semantics
        return place(node, token)

    def _rows(self) -> exp.Var | None:
        token = self.cursor.current
        if self.cursor.take("ONE", "ROW", "PER", "MATCH") or self.cursor.take("ALL", "ROWS", "PER", "MATCH"):
            return exp.Var(this=self.cursor.text_since(token).upper())
        return None

    def _after(self) -> exp.Var | None:
        token = self.cursor.current
        if not self.cursor.take("AFTER", "MATCH", "SKIP"):
            return None
        if self.cursor.take("PAST"):
            self.cursor.expect("LAST", "ROW")
        else:
            self.cursor.expect("TO")
            if not self.cursor.take("NEXT", "ROW"):
                self.cursor.take_any("FIRST", "LAST")
                self.cursor.identifier()
        return exp.Var(this=self.cursor.text_since(token))

    def _pattern(self) -> str:
        """The text between balanced parentheses."""
        self.cursor.expect("(")
        first = self.cursor.current
        depth = 1
        while depth:
            token = self.cursor.advance()
            if token.kind is Kind.EOF:
                self.cursor.fail(")")
            depth += {"(": 1, ")": -1}.get(token.upper, 0)
        return self.cursor.text[first.start : self.cursor.previous.start].strip()

    def _definition(self) -> exp.Expression:
        token = self.cursor.current
        symbol = self.cursor.identifier()
        self.cursor.expect("AS")
        return place(exp.Alias(this=self.nested.expression(), alias=symbol), token)
