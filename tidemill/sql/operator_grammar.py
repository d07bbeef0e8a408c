"""Operators with Flink's precedence, loosest first.

``OR``, ``AND``, ``NOT``, ``IS ...``, comparisons, ``IN BETWEEN LIKE SIMILAR``, ``+ -``, ``* / ||``, unary
signs, then ``[ ]`` and ``.``; each level is left-associative. (Calcite's SqlStdOperatorTable gives
them 22, 24, 26, 28, 30, 32, 40, 60, 80 and 100.) Nothing is folded or rewritten: NOT BETWEEN is Not
over Between, IS NOT NULL is Not over Is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NoReturn

from sqlglot import exp

from tidemill.errors import SqlSyntaxError
from tidemill.sql import expressions as x
from tidemill.sql.call_grammar import CallGrammar
from tidemill.sql.lexer import Token

Build = Callable[[exp.Expression, exp.Expression], exp.Expression]


def _binary(node: type[exp.Expression]) -> Build:
    return lambda left, right: node(this=left, expression=right)


_COMPARISONS: dict[str, Build] = {
    "=": _binary(exp.EQ),
    "<>": _binary(exp.NEQ),
    "<": _binary(exp.LT),
    "<=": _binary(exp.LTE),
    ">": _binary(exp.GT),
    ">=": _binary(exp.GTE),
    "OVERLAPS": lambda left, right: exp.Anonymous(this="OVERLAPS", expressions=[left, right]),
}
_ADDITIVE: dict[str, Build] = {"+": _binary(exp.Add), "-": _binary(exp.Sub)}
_MULTIPLICATIVE: dict[str, Build] = {
    "*": _binary(exp.Mul),
    "/": _binary(exp.Div),
    "%": _binary(exp.Mod),
    "||": _binary(exp.DPipe),
}
_FORBIDDEN = {"!=": "Bang equal '!=' is not allowed under the current SQL conformance level"}
_IS: dict[str, Callable[[exp.Expression], exp.Expression]] = {
    "NULL": lambda this: exp.Is(this=this, expression=exp.Null()),
    "TRUE": lambda this: exp.Is(this=this, expression=exp.Boolean(this=True)),
    "FALSE": lambda this: exp.Is(this=this, expression=exp.Boolean(this=False)),
    "UNKNOWN": lambda this: x.IsUnknown(this=this),
}
_JSON_KINDS = ("VALUE", "OBJECT", "ARRAY", "SCALAR")
_QUANTIFIERS: dict[str, type[exp.Expression]] = {"ANY": exp.Any, "SOME": exp.Any, "ALL": exp.All}
_MULTISET_OPERATORS = ("MULTISET", "MEMBER", "SUBMULTISET")
_PERIOD_OPERATORS = ("CONTAINS", "EQUALS", "PRECEDES", "SUCCEEDS")


class OperatorGrammar(CallGrammar):
    def expression(self) -> exp.Expression:
        left = self._conjunction()
        while token := self._took("OR"):
            left = self.place(exp.Or(this=left, expression=self._conjunction()), token)
        return left

    def _took(self, *words: str) -> Token | None:
        return self.advance() if self.at_any(*words) else None

    def _conjunction(self) -> exp.Expression:
        left = self._negation()
        while token := self._took("AND"):
            left = self.place(exp.And(this=left, expression=self._negation()), token)
        return left

    def _negation(self) -> exp.Expression:
        if token := self._took("NOT"):
            return self.place(exp.Not(this=self._negation()), token)
        return self._test()

    def _test(self) -> exp.Expression:
        """``x IS [NOT] NULL | TRUE | FALSE | UNKNOWN | JSON``; its result may be compared further."""
        left = self._comparison(self._sum())
        while self.at("IS"):
            token = self.advance()
            negated = self.take("NOT")
            node = self.place(self._is(left), token)
            left = self._comparison(self.place(exp.Not(this=node), token) if negated else node)
        return left

    def _is(self, left: exp.Expression) -> exp.Expression:
        if self.take("JSON"):
            return x.IsJson(this=left, kind=self.take_any(*_JSON_KINDS) or "VALUE")
        word = self.take_any(*_IS)
        if not word:
            if self.at("A", "SET") or self.at("EMPTY"):
                self.refuse(f"IS {self.current.upper}")
            self.fail(*_IS, "JSON", "DISTINCT")
        return _IS[word](left)

    def _comparison(self, left: exp.Expression) -> exp.Expression:
        left = self._range(left)
        while True:
            if self._at_distinct():
                left = self._distinct(left)
            elif token := self._took(*_COMPARISONS):
                left = self.place(_COMPARISONS[token.upper](left, self._compared()), token)
            else:
                self._refuse_comparison()
                return left

    def _at_distinct(self) -> bool:
        return self.at("IS", "DISTINCT", "FROM") or self.at("IS", "NOT", "DISTINCT", "FROM")

    def _distinct(self, left: exp.Expression) -> exp.Expression:
        token = self.advance()
        node = exp.NullSafeEQ if self.take("NOT") else exp.NullSafeNEQ
        self.expect("DISTINCT", "FROM")
        return self.place(node(this=left, expression=self._range(self._sum())), token)

    def _compared(self) -> exp.Expression:
        """The right side of a comparison: also ``ANY (query)``."""
        token = self.current
        if token.upper in _QUANTIFIERS and self.peek().upper == "(":
            self.advance()
            return self.place(_QUANTIFIERS[token.upper](this=self._query_or_list()), token)
        return self._range(self._sum())

    def _query_or_list(self) -> exp.Expression:
        self.expect("(")
        inner = self.query() if self.at_query() else self._list()
        self.expect(")")
        return inner

    def _list(self) -> exp.Expression:
        return exp.Tuple(expressions=self.separated(self.expression))

    def _refuse_comparison(self) -> None:
        token = self.current
        if token.upper in _FORBIDDEN:
            raise SqlSyntaxError(_FORBIDDEN[token.upper], position=token.position, expected=("<>",))
        if token.upper in _PERIOD_OPERATORS:
            self.refuse(f"The period operator {token.upper}")
        if token.upper in _MULTISET_OPERATORS:
            self.refuse(f"The multiset operator {token.upper}")

    def _range(self, left: exp.Expression) -> exp.Expression:
        """``x [NOT] IN | BETWEEN | LIKE | SIMILAR TO`` behind ``left``."""
        while True:
            negated = self.at("NOT") and self.peek().upper in self._RANGES
            word = self.peek().upper if negated else self.current.upper
            if word not in self._RANGES:
                return left
            token = self.advance()
            if negated:
                self.advance()
            node = self.place(self._RANGES[word](self, left), token)
            left = self.place(exp.Not(this=node), token) if negated else node

    def _in(self, left: exp.Expression) -> exp.Expression:
        if self.at_any(*_QUANTIFIERS):
            self.fail("(")
        inner = self._query_or_list()
        if isinstance(inner, exp.Tuple):
            return exp.In(this=left, expressions=inner.expressions)
        return exp.In(this=left, query=inner)

    def _between(self, left: exp.Expression) -> exp.Expression:
        symmetric = self.take_any("SYMMETRIC", "ASYMMETRIC") == "SYMMETRIC"
        low = self._sum()
        self.expect("AND")
        return exp.Between(this=left, low=low, high=self._sum(), symmetric=symmetric)

    def _like(self, left: exp.Expression) -> exp.Expression:
        return self._escaped(exp.Like(this=left, expression=self._sum()))

    def _similar(self, left: exp.Expression) -> exp.Expression:
        self.expect("TO")
        return self._escaped(exp.SimilarTo(this=left, expression=self._sum()))

    def _escaped(self, node: exp.Expression) -> exp.Expression:
        if self.take("ESCAPE"):
            return exp.Escape(this=node, expression=self._sum())
        return node

    def _library_like(self, left: exp.Expression) -> NoReturn:
        name = self.previous.upper
        raise SqlSyntaxError(
            f"No match found for function signature {name}",
            position=self.previous.position,
            expected=("LIKE",),
        )

    _RANGES: ClassVar[dict[str, Callable[[OperatorGrammar, exp.Expression], exp.Expression]]] = {
        "IN": _in,
        "BETWEEN": _between,
        "LIKE": _like,
        "SIMILAR": _similar,
        "RLIKE": _library_like,
        "ILIKE": _library_like,
    }

    def _sum(self) -> exp.Expression:
        left = self._product()
        while token := self._took(*_ADDITIVE):
            left = self.place(_ADDITIVE[token.upper](left, self._product()), token)
        return left

    def _product(self) -> exp.Expression:
        left = self._signed()
        while token := self._took(*_MULTIPLICATIVE):
            left = self.place(_MULTIPLICATIVE[token.upper](left, self._signed()), token)
        return left

    def _signed(self) -> exp.Expression:
        if token := self._took("-"):
            return self.place(exp.Neg(this=self._signed()), token)
        if self._took("+"):
            return self._signed()
        if token := self._took("NOT"):
            return self.place(exp.Not(this=self._signed()), token)
        return self._postfixed()

    def _postfixed(self) -> exp.Expression:
        """``x[i]`` and ``x.field`` behind a value."""
        node = self.primary()
        while True:
            if token := self._took("["):
                index = self._subscript()
                node = self.place(exp.Bracket(this=node, expressions=[index]), token)
            elif self.at(".") and not isinstance(node, exp.Literal):
                token = self.advance()
                node = self.place(exp.Dot(this=node, expression=self.identifier()), token)
            else:
                return node

    def _subscript(self) -> exp.Expression:
        index = self.expression()
        self.expect("]")
        return index
