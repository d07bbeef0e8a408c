"""Operators with Flink's precedence, loosest first.

``OR``, ``AND``, ``NOT``, ``IS ...``, comparisons, ``IN BETWEEN LIKE SIMILAR``, ``+ -``, ``* / ||``, unary
signs, then ``[ ]`` and ``.``; each level is left-associative. (Calcite's SqlStdOperatorTable gives
them 22, 24, 26, 28, 30, 32, 40, 60, 80 and 100.) Nothing is folded or rewritten: NOT BETWEEN is Not
over Between, IS NOT NULL is Not over Is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NoReturn

from sqlglot import exp

from tidemill.errors import SqlSyntaxError
from tidemill.sql import expressions as x
from tidemill.sql.grammar.cursor import Cursor, at_query
from tidemill.sql.grammar.expressions.primary import Primary
from tidemill.sql.grammar.nested import Nested
from tidemill.sql.positions import place

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


@dataclass(frozen=True, slots=True)
class Operators:
    cursor: Cursor
    nested: Nested
    primary: Primary

    def expression(self) -> exp.Expression:
        left = self._conjunction()
        while token := self.cursor.took("OR"):
            left = place(exp.Or(this=left, expression=self._conjunction()), token)
        return left

    def _conjunction(self) -> exp.Expression:
        left = self._negation()
        while token := self.cursor.took("AND"):
            left = place(exp.And(this=left, expression=self._negation()), token)
        return left

    def _negation(self) -> exp.Expression:
        if token := self.cursor.took("NOT"):
            return place(exp.Not(this=self._negation()), token)
        return self._test()

    def _test(self) -> exp.Expression:
        """``x IS [NOT] NULL | TRUE | FALSE | UNKNOWN | JSON``; its result may be compared further."""
        left = self._comparison(self.operand())
        while self.cursor.at("IS"):
            token = self.cursor.advance()
            negated = self.cursor.take("NOT")
            node = place(self._is(left), token)
            left = self._comparison(place(exp.Not(this=node), token) if negated else node)
        return left

    def _is(self, left: exp.Expression) -> exp.Expression:
        if self.cursor.take("JSON"):
            return x.IsJson(this=left, kind=self.cursor.take_any(*_JSON_KINDS) or "VALUE")
        word = self.cursor.take_any(*_IS)
        if not word:
            if self.cursor.at("A", "SET") or self.cursor.at("EMPTY"):
                self.cursor.refuse(f"IS {self.cursor.current.upper}")
            self.cursor.fail(*_IS, "JSON", "DISTINCT")
        return _IS[word](left)

    def _comparison(self, left: exp.Expression) -> exp.Expression:
        left = self._range(left)
        while True:
            if self._at_distinct():
                left = self._distinct(left)
            elif token := self.cursor.took(*_COMPARISONS):
                left = place(_COMPARISONS[token.upper](left, self._compared()), token)
            else:
                self._refuse_comparison()
                return left

    def _at_distinct(self) -> bool:
        return self.cursor.at("IS", "DISTINCT", "FROM") or self.cursor.at("IS", "NOT", "DISTINCT", "FROM")

    def _distinct(self, left: exp.Expression) -> exp.Expression:
        token = self.cursor.advance()
        node = exp.NullSafeEQ if self.cursor.take("NOT") else exp.NullSafeNEQ
        self.cursor.expect("DISTINCT", "FROM")
        return place(node(this=left, expression=self._range(self.operand())), token)

    def _compared(self) -> exp.Expression:
        """The right side of a comparison: also ``ANY (query)``."""
        token = self.cursor.current
        if token.upper in _QUANTIFIERS and self.cursor.peek().upper == "(":
            self.cursor.advance()
            return place(_QUANTIFIERS[token.upper](this=self._query_or_list()), token)
        return self._range(self.operand())

    def _query_or_list(self) -> exp.Expression:
        self.cursor.expect("(")
        inner = self.nested.query() if at_query(self.cursor) else self._list()
        self.cursor.expect(")")
        return inner

    def _list(self) -> exp.Expression:
        return exp.Tuple(expressions=self.cursor.separated(self.nested.expression))

    def _refuse_comparison(self) -> None:
        token = self.cursor.current
        if token.upper in _FORBIDDEN:
            raise SqlSyntaxError(_FORBIDDEN[token.upper], position=token.position, expected=("<>",))
        if token.upper in _PERIOD_OPERATORS:
            self.cursor.refuse(f"The period operator {token.upper}")
        if token.upper in _MULTISET_OPERATORS:
            self.cursor.refuse(f"The multiset operator {token.upper}")

    def _range(self, left: exp.Expression) -> exp.Expression:
        """``x [NOT] IN | BETWEEN | LIKE | SIMILAR TO`` behind ``left``."""
        while True:
            negated = self.cursor.at("NOT") and self.cursor.peek().upper in self._RANGES
            word = self.cursor.peek().upper if negated else self.cursor.current.upper
            if word not in self._RANGES:
                return left
            token = self.cursor.advance()
            if negated:
                self.cursor.advance()
            node = place(self._RANGES[word](self, left), token)
            left = place(exp.Not(this=node), token) if negated else node

    def _in(self, left: exp.Expression) -> exp.Expression:
        if self.cursor.at_any(*_QUANTIFIERS):
            self.cursor.fail("(")
        inner = self._query_or_list()
        if isinstance(inner, exp.Tuple):
            return exp.In(this=left, expressions=inner.expressions)
        return exp.In(this=left, query=inner)

    def _between(self, left: exp.Expression) -> exp.Expression:
        symmetric = self.cursor.take_any("SYMMETRIC", "ASYMMETRIC") == "SYMMETRIC"
        low = self.operand()
        self.cursor.expect("AND")
        return exp.Between(this=left, low=low, high=self.operand(), symmetric=symmetric)

    def _like(self, left: exp.Expression) -> exp.Expression:
        return self._escaped(exp.Like(this=left, expression=self.operand()))

    def _similar(self, left: exp.Expression) -> exp.Expression:
        self.cursor.expect("TO")
        return self._escaped(exp.SimilarTo(this=left, expression=self.operand()))

    def _escaped(self, node: exp.Expression) -> exp.Expression:
        if self.cursor.take("ESCAPE"):
            return exp.Escape(this=node, expression=self.operand())
        return node

    def _library_like(self, left: exp.Expression) -> NoReturn:
        name = self.cursor.previous.upper
        raise SqlSyntaxError(
            f"No match found for function signature {name}",
            position=self.cursor.previous.position,
            expected=("LIKE",),
        )

    _RANGES: ClassVar[dict[str, Callable[[Operators, exp.Expression], exp.Expression]]] = {
        "IN": _in,
        "BETWEEN": _between,
        "LIKE": _like,
        "SIMILAR": _similar,
        "RLIKE": _library_like,
        "ILIKE": _library_like,
    }

    def operand(self) -> exp.Expression:
        left = self._product()
        while token := self.cursor.took(*_ADDITIVE):
            left = place(_ADDITIVE[token.upper](left, self._product()), token)
        return left

    def _product(self) -> exp.Expression:
        left = self._signed()
        while token := self.cursor.took(*_MULTIPLICATIVE):
            left = place(_MULTIPLICATIVE[token.upper](left, self._signed()), token)
        return left

    def _signed(self) -> exp.Expression:
        if token := self.cursor.took("-"):
            return place(exp.Neg(this=self._signed()), token)
        if self.cursor.took("+"):
            return self._signed()
        if token := self.cursor.took("NOT"):
            return place(exp.Not(this=self._signed()), token)
        return self._postfixed()

    def _postfixed(self) -> exp.Expression:
        """``x[i]`` and ``x.field`` behind a value."""
        node = self.primary.read()
        while True:
            if token := self.cursor.took("["):
                index = self._subscript()
                node = place(exp.Bracket(this=node, expressions=[index]), token)
            elif self.cursor.at(".") and not isinstance(node, exp.Literal):
                token = self.cursor.advance()
                node = place(exp.Dot(this=node, expression=self.cursor.identifier()), token)
            else:
                return node

    def _subscript(self) -> exp.Expression:
        index = self.nested.expression()
        self.cursor.expect("]")
        return index
