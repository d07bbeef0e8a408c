"""MATCH_RECOGNIZE: read whole, so that what refuses it can say what it is."""

from __future__ import annotations

from sqlglot import exp

from tidemill.sql.lexer import Kind
from tidemill.sql.window_grammar import WindowGrammar


class MatchGrammar(WindowGrammar):
    def match_recognize(self, source: exp.Expression) -> exp.MatchRecognize:
        """``this`` is the input relation; ``pattern`` the pattern's text between its parentheses.

        ``measures`` are exp.Alias, ``define`` exp.Alias(this=condition, alias=symbol), ``rows`` and
        ``after`` the words as written; WITHIN's interval is kept in ``within``.
        """
        self.expect("(")
        partition = self.separated(self.expression) if self.take("PARTITION", "BY") else []
        order = self.order_by()
        measures = self.separated(self._measure) if self.take("MEASURES") else []
        rows = self._rows()
        after = self._after()
        self.expect("PATTERN")
        pattern = self._pattern()
        within = self.expression() if self.take("WITHIN") else None
        if self.at("SUBSET"):
            self.refuse("SUBSET in MATCH_RECOGNIZE")
        self.expect("DEFINE")
        define = self.separated(self._definition)
        self.expect(")")
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
        token = self.current
        semantics = self.take_any("FINAL", "RUNNING")
        value = self.expression()
        self.expect("AS")
        node = exp.Alias(this=value, alias=self.identifier())
        node.meta["semantics"] = semantics
        return self.place(node, token)

    def _rows(self) -> exp.Var | None:
        token = self.current
        if self.take("ONE", "ROW", "PER", "MATCH") or self.take("ALL", "ROWS", "PER", "MATCH"):
            return exp.Var(this=self.text_since(token).upper())
        return None

    def _after(self) -> exp.Var | None:
        token = self.current
        if not self.take("AFTER", "MATCH", "SKIP"):
            return None
        if self.take("PAST"):
            self.expect("LAST", "ROW")
        else:
            self.expect("TO")
            if not self.take("NEXT", "ROW"):
                self.take_any("FIRST", "LAST")
                self.identifier()
        return exp.Var(this=self.text_since(token))

    def _pattern(self) -> str:
        """The text between balanced parentheses."""
        self.expect("(")
        first = self.current
        depth = 1
        while depth:
            token = self.advance()
            if token.kind is Kind.EOF:
                self.fail(")")
            depth += {"(": 1, ")": -1}.get(token.upper, 0)
        return self.text[first.start : self.previous.start].strip()

    def _definition(self) -> exp.Expression:
        token = self.current
        symbol = self.identifier()
        self.expect("AS")
        return self.place(exp.Alias(this=self.expression(), alias=symbol), token)
