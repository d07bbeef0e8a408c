"""Values that are not operators: names, calls, CASE, CAST, constructors and functions with keywords.

A call whose arguments are plain comes out as ``exp.Anonymous`` with the name as written. The table
``_SPECIAL`` holds the functions whose arguments have words between them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp

from tidemill.errors import ValidationError
from tidemill.sql import expressions as x
from tidemill.sql.json_grammar import JsonGrammar
from tidemill.sql.lexer import Kind, Token
from tidemill.sql.reserved import BARE_COLUMNS, BARE_FUNCTIONS, CALLABLE

_ORDERED_AGGREGATES = ("ARRAY_AGG", "ARRAY_CONCAT_AGG", "GROUP_CONCAT", "STRING_AGG")
_COLUMN_PARTS = ("this", "table", "db", "catalog")
_QUERY_STARTS = ("SELECT", "VALUES", "WITH")
_FRAMES = (
    "NANOSECOND", "MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER",
    "YEAR", "EPOCH", "DOW", "DOY", "ISODOW", "ISOYEAR", "DECADE", "CENTURY", "MILLENNIUM",
)  # fmt: skip
_TIME_FRAMES = (
    {frame: frame for frame in _FRAMES}
    | {f"SQL_TSI_{frame}": frame for frame in _FRAMES[1:11] if frame != "MILLISECOND"}
    | {"SQL_TSI_FRAC_SECOND": "MICROSECOND", "FRAC_SECOND": "MICROSECOND"}
)


class CallGrammar(JsonGrammar):
    def at_query(self) -> bool:
        """Whether a query starts here, also behind opening parentheses."""
        ahead = 0
        while self.peek(ahead).upper == "(":
            ahead += 1
        word = self.peek(ahead).upper
        return word in _QUERY_STARTS or (word == "TABLE" and self.peek(ahead + 1).upper != "(")

    def primary(self) -> exp.Expression:
        token = self.current
        special = self._SPECIAL.get(token.upper)
        if special is not None and self._special_applies(token.upper):
            self.advance()
            return self.place(special(self), token)
        literal = self.literal()
        if literal is not None:
            return literal
        if token.upper == "(":
            return self._parenthesised()
        if token.upper in BARE_FUNCTIONS and self.peek().upper != "(":
            self.advance()
            return self.place(exp.Anonymous(this=token.value, expressions=[]), token)
        if token.upper in CALLABLE and self.peek().upper == "(":
            self.advance()
            return self.call(token, token.value)
        if token.upper in BARE_COLUMNS:
            return self.place(_column([self._bare_column()]), token)
        return self._name_or_call(token)

    def _bare_column(self) -> exp.Identifier:
        token = self.advance()
        return self.place(exp.Identifier(this=token.value, quoted=False), token)

    def _special_applies(self, word: str) -> bool:
        return word in ("CASE",) or self.peek().upper in ("(", "[")

    def _parenthesised(self) -> exp.Expression:
        token = self.advance()
        node: exp.Expression
        if self.at_query() and not self._is_operand_ahead():
            node = exp.Subquery(this=self.query())
        else:
            items = self.separated(self.expression)
            node = exp.Paren(this=items[0]) if len(items) == 1 else exp.Tuple(expressions=items)
        self.expect(")")
        return self.place(node, token)

    def _is_operand_ahead(self) -> bool:
        """``((SELECT 1) + 2)``: the inner parenthesis is a value, not the query's own."""
        if not self.at("("):
            return False
        depth, ahead = 0, 0
        while self.peek(ahead).kind is not Kind.EOF:
            depth += {"(": 1, ")": -1}.get(self.peek(ahead).upper, 0)
            ahead += 1
            if depth == 0:
                break
        after = self.peek(ahead).upper
        return after not in (")", "UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "OFFSET", "FETCH")

    def _name_or_call(self, token: Token) -> exp.Expression:
        if not self.at_identifier():
            self.fail("<EXPRESSION>")
        parts = self._dotted()
        if self.at("(") and isinstance(parts[-1], exp.Identifier):
            name = ".".join(part.name for part in parts)
            return self.call(token, name)
        return self.place(_column(parts), token)

    def _dotted(self) -> list[exp.Expression]:
        """``a.b.c`` or ``a.b.*``."""
        parts: list[exp.Expression] = [self.identifier()]
        while self.take("."):
            if self.at("*"):
                parts.append(self.place(exp.Star(), self.advance()))
                break
            parts.append(self._bare_column() if self.at_any(*BARE_COLUMNS) else self.identifier())
        return parts

    def call(self, token: Token, name: str) -> exp.Expression:
        """The arguments of a call and what may follow: WITHIN GROUP, FILTER, null treatment, OVER."""
        arguments = self.arguments(aggregate=name.upper() in _ORDERED_AGGREGATES)
        node = exp.Anonymous(this=name, expressions=arguments)
        return self.followed(self.place(node, token))

    def followed(self, node: exp.Expression) -> exp.Expression:
        """FILTER, OVER and the like behind a call; given by the window grammar."""
        raise NotImplementedError

    def arguments(self, *, aggregate: bool = False) -> list[exp.Expression]:
        """``([DISTINCT | ALL] a, b => c, *)``; ``aggregate`` allows null treatment and ORDER BY inside."""
        self.expect("(")
        if self.take(")"):
            return []
        distinct = self.take_any("DISTINCT", "ALL") == "DISTINCT"
        items = self.separated(self.argument)
        if aggregate:
            items[-1] = self.aggregate_order(self.null_treatment(items[-1]))
        self.expect(")")
        return [exp.Distinct(expressions=items)] if distinct else items

    def null_treatment(self, node: exp.Expression) -> exp.Expression:
        """IGNORE / RESPECT NULLS around ``node``; given by the window grammar."""
        raise NotImplementedError

    def aggregate_order(self, last: exp.Expression) -> exp.Expression:
        """``x ORDER BY y`` in an aggregate: an exp.Order around ``x``; given by the window grammar."""
        raise NotImplementedError

    def argument(self) -> exp.Expression:
        token = self.current
        if self.at("*"):
            return self.place(exp.Star(), self.advance())
        if self.peek().upper == "=>":
            name = self._argument_name()
            self.expect("=>")
            return self.place(exp.Kwarg(this=exp.Var(this=name), expression=self.argument()), token)
        return self._special_argument() or self.expression()

    def _argument_name(self) -> str:
        if self.at_kind(Kind.WORD):
            return self.advance().value
        return self.identifier().name

    def _special_argument(self) -> exp.Expression | None:
        token = self.current
        if self.at("TABLE"):
            return self.place(self.table_argument(), token)
        if self.at("DEFAULT"):
            return self.place(exp.Var(this="DEFAULT"), self.advance())
        if self.take("DESCRIPTOR"):
            return self.place(x.Descriptor(expressions=self.wrapped(self.identifier)), token)
        if self.at_query() and self.current.upper != "(":
            return self.place(exp.Subquery(this=self.query()), token)
        return None

    def table_argument(self) -> exp.Expression:
        """``TABLE t`` or ``TABLE (query)``, partitioned and ordered; given by the relation grammar."""
        raise NotImplementedError

    def _case(self) -> exp.Expression:
        operand = None if self.at("WHEN") else self.expression()
        branches: list[exp.If] = []
        while self.take("WHEN"):
            tests = self.separated(self.expression) if operand is not None else [self.expression()]
            self.expect("THEN")
            result = self.expression()
            branches += [exp.If(this=test, true=result.copy()) for test in tests]
        if not branches:
            self.fail("WHEN")
        default = self.expression() if self.take("ELSE") else None
        self.expect("END")
        return exp.Case(this=operand, ifs=branches, default=default)

    def _cast(self) -> exp.Expression:
        node = {"CAST": exp.Cast, "TRY_CAST": exp.TryCast}[self.previous.upper]
        self.expect("(")
        operand = self.expression()
        self.expect("AS")
        kind = self.type_spec()
        self.expect(")")
        return node(this=operand, to=kind)

    def _array(self) -> exp.Expression:
        return exp.Array(expressions=self._bracketed()) if self.at("[") else self._from_query("ARRAY")

    def _multiset(self) -> exp.Expression:
        if self.at("["):
            return x.MultisetLiteral(expressions=self._bracketed())
        return self._from_query("MULTISET")

    def _map(self) -> exp.Expression:
        if not self.at("["):
            return self._from_query("MAP")
        items = self._bracketed()
        if len(items) % 2:
            message = "Map requires an even number of arguments"
            raise ValidationError(message, position=self.previous.position)
        keys, values = exp.Array(expressions=items[::2]), exp.Array(expressions=items[1::2])
        return exp.Map(keys=keys, values=values)

    def _bracketed(self) -> list[exp.Expression]:
        self.expect("[")
        items = [] if self.at("]") else self.separated(self.expression)
        self.expect("]")
        return items

    def _from_query(self, kind: str) -> exp.Expression:
        self.expect("(")
        if not self.at_query():
            self.refuse(f"{kind}(...) of something that is not a query")
        query = self.query()
        self.expect(")")
        return x.ArrayQuery(this=query, kind=kind)

    def _row(self) -> exp.Expression:
        self.expect("(")
        items = self.separated(self.expression)
        self.expect(")")
        return exp.Tuple(expressions=items)

    def _exists(self) -> exp.Expression:
        self.expect("(")
        query = self.query()
        self.expect(")")
        return exp.Exists(this=query)

    def time_unit(self) -> exp.Var:
        token = self.current
        if token.kind is not Kind.WORD:
            self.fail("<TIME_UNIT>")
        if token.upper not in _TIME_FRAMES:
            message = f"'{token.text}' is not a valid time frame"
            raise ValidationError(message, position=token.position, expected=_FRAMES)
        self.advance()
        return self.place(exp.Var(this=_TIME_FRAMES[token.upper]), token)

    def _extract(self) -> exp.Expression:
        self.expect("(")
        unit = self.time_unit()
        self.expect("FROM")
        operand = self.expression()
        self.expect(")")
        return exp.Extract(this=unit, expression=operand)

    def _rounding(self) -> exp.Expression:
        """``FLOOR(x)`` is a plain call, ``FLOOR(x TO DAY)`` a node of its own."""
        name = self.previous.value
        self.expect("(")
        operand = self.expression()
        if self.take("TO"):
            node = exp.Floor if name.upper() == "FLOOR" else exp.Ceil
            unit = self.time_unit()
            self.expect(")")
            return node(this=operand, to=unit)
        self.expect(")")
        return exp.Anonymous(this=name, expressions=[operand])

    def _trim(self) -> exp.Expression:
        self.expect("(")
        position = self.take_any("BOTH", "LEADING", "TRAILING")
        operand, characters = None if position and self.at("FROM") else self.expression(), None
        if self.take("FROM"):
            operand, characters = self.expression(), operand
        self.expect(")")
        return exp.Trim(this=operand, expression=characters, position=position or "BOTH")

    def _worded(self, *words: str) -> exp.Expression:
        """``F(a WORD b WORD c)`` is the plain call F(a, b, c); SUBSTRING takes commas as well."""
        name = self.previous.value
        self.expect("(")
        items = [self._haystack() if words[0] == "IN" else self.expression()]
        if name.upper() == "SUBSTRING" and self.take(","):
            items += self.separated(self.expression)
        else:
            items += [self.expression() for word in words if self.take(word)]
        self.expect(")")
        return exp.Anonymous(this=name, expressions=items)

    def _haystack(self) -> exp.Expression:
        """POSITION's first argument ends before IN, which would otherwise be the operator."""
        return self._sum()

    def _sum(self) -> exp.Expression:
        raise NotImplementedError

    def _unit_call(self) -> exp.Expression:
        """TIMESTAMPADD(unit, n, t) and TIMESTAMPDIFF(unit, a, b)."""
        name = self.previous.value
        self.expect("(")
        items: list[exp.Expression] = [self.time_unit()]
        self.expect(",")
        items += self.separated(self.expression)
        self.expect(")")
        return exp.Anonymous(this=name, expressions=items)

    _SPECIAL: ClassVar[dict[str, Callable[[CallGrammar], exp.Expression]]] = {
        "CASE": _case,
        "CAST": _cast,
        "TRY_CAST": _cast,
        "ARRAY": _array,
        "MAP": _map,
        "MULTISET": _multiset,
        "ROW": _row,
        "EXISTS": _exists,
        "EXTRACT": _extract,
        "FLOOR": _rounding,
        "CEIL": _rounding,
        "CEILING": _rounding,
        "TRIM": _trim,
        "POSITION": lambda self: self._worded("IN", "FROM"),
        "OVERLAY": lambda self: self._worded("PLACING", "FROM", "FOR"),
        "SUBSTRING": lambda self: self._worded("FROM", "FOR"),
        "TIMESTAMPADD": _unit_call,
        "TIMESTAMPDIFF": _unit_call,
        "JSON_VALUE": lambda self: self.json_value(),
        "JSON_QUERY": lambda self: self.json_query(),
        "JSON_EXISTS": lambda self: self.json_exists(),
        "JSON_OBJECT": lambda self: self.json_object(),
        "JSON_ARRAY": lambda self: self.json_array(),
        "JSON_OBJECTAGG": lambda self: self.followed(self.json_object_agg()),
        "JSON_ARRAYAGG": lambda self: self.followed(self.json_array_agg()),
    }


def _column(parts: list[exp.Expression]) -> exp.Expression:
    """Up to four parts are one Column, further ones Dots around it."""
    head, tail = parts[: len(_COLUMN_PARTS)], parts[len(_COLUMN_PARTS) :]
    node: exp.Expression = exp.Column(**dict(zip(_COLUMN_PARTS, reversed(head), strict=False)))
    for part in tail:
        node = exp.Dot(this=node, expression=part)
    return node
