"""Expressions: operators with parentheses where precedence needs them, literals, names, constructors.

Parentheses follow Calcite: each operator has a binding strength to its left and to its right, and an
expression gets parentheses if its neighbour binds more strongly. Needless parentheses of the text are
dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from tidemill.sql import expressions as x
from tidemill.sql.full_text.names import FullNames, Unprintable, quoted, string

_OR, _AND, _NOT, _IS, _COMPARED, _IN, _SUM, _PRODUCT, _SIGN, _OVER, _EXISTS = (
    44, 48, 52, 56, 60, 64, 80, 120, 160, 40, 80,
)  # fmt: skip
"""Strengths to the left; those to the right are one more: operators of one strength go from left to right."""

_BINARY: dict[type[exp.Expr], tuple[int, str]] = {
    exp.Or: (_OR, "OR"),
    exp.And: (_AND, "AND"),
    exp.EQ: (_COMPARED, "="),
    exp.NEQ: (_COMPARED, "<>"),
    exp.LT: (_COMPARED, "<"),
    exp.LTE: (_COMPARED, "<="),
    exp.GT: (_COMPARED, ">"),
    exp.GTE: (_COMPARED, ">="),
    exp.NullSafeEQ: (_COMPARED, "IS NOT DISTINCT FROM"),
    exp.NullSafeNEQ: (_COMPARED, "IS DISTINCT FROM"),
    exp.Add: (_SUM, "+"),
    exp.Sub: (_SUM, "-"),
    exp.Mul: (_PRODUCT, "*"),
    exp.Div: (_PRODUCT, "/"),
    exp.Mod: (_PRODUCT, "%"),
    exp.DPipe: (_PRODUCT, "||"),
}
_TESTS: dict[type[exp.Expr], int] = {
    exp.Is: _IS,
    x.IsUnknown: _IS,
    x.IsJson: _IS,
    exp.In: _IN,
    exp.Between: _IN,
    exp.Like: _IN,
    exp.SimilarTo: _IN,
    exp.Escape: _IN,
}


@dataclass(frozen=True, slots=True)
class Printer:
    """Prints the trees of one query. ``query`` prints a query inside an expression, ``others`` what is no
    operator and no constructor, by the class of its node. ``rewritten``: as for the whole query."""

    names: FullNames
    query: Callable[[exp.Expr], str]
    rewritten: bool
    others: dict[type[exp.Expr], Callable[[Printer, exp.Expr], str]] = field(repr=False)

    def text(self, node: exp.Expr, left: int = 0, right: int = 0) -> str:
        """``left`` and ``right``: how strongly the neighbours bind; 0 if there are none."""
        node = _bare(node)
        strength = _strength(node)
        if strength and (left > strength or (right and strength + 1 <= right)):
            return f"({self._operation(node, 0, 0)})"
        return self._operation(node, left, right) if strength else self._value(node)

    def listed(self, nodes: Iterable[exp.Expr]) -> str:
        return ", ".join(self.text(node) for node in nodes)

    def _operation(self, node: exp.Expr, left: int, right: int) -> str:
        if type(node) in _BINARY:
            strength, word = _BINARY[type(node)]
            first = self.text(node.this, left, strength)
            return f"{first} {word} {self._right(node.expression, strength + 1, right)}"
        if isinstance(node, exp.Not):
            tested = _bare(node.this)
            if type(tested) in _TESTS:
                return self._test(tested, left, right, "NOT ")
            return f"NOT {self.text(tested, _NOT, _NOT + 1)}"
        if isinstance(node, exp.Neg):
            number = _bare(node.this)
            if isinstance(number, exp.Literal) and not number.args["is_string"]:
                return f"-{number.name.upper()}"
            return f"- {self.text(node.this, _SIGN, _SIGN + 1)}"
        if isinstance(node, exp.Exists):
            return f"EXISTS ({self.query(node.this)})"
        if isinstance(node, exp.Window):
            return self.others[exp.Window](self, node)
        return self._test(node, left, right, "")

    def _right(self, node: exp.Expr, left: int, right: int) -> str:
        if isinstance(node, exp.Any | exp.All):
            word = "SOME" if isinstance(node, exp.Any) else "ALL"
            listed = isinstance(node.this, exp.Tuple)
            return f"{word} ({self.listed(node.this.expressions) if listed else self.query(node.this)})"
        return self.text(node, left, right)

    def _test(self, node: exp.Expr, left: int, right: int, negated: str) -> str:
        if isinstance(node, exp.Escape):
            return (
                f"{self._test(node.this, left, _IN, negated)} ESCAPE {self.text(node.expression, _IN, right)}"
            )
        strength = _TESTS[type(node)]
        if strength == _IS:
            return f"{self.text(node.this, _IS, _IS + 1)} IS {negated}{_tested(node)}"
        first = self.text(node.this, left, strength)
        if isinstance(node, exp.In):
            return f"{first} {negated}IN ({self._members(node)})"
        if isinstance(node, exp.Between):
            kind = "SYMMETRIC" if node.args.get("symmetric") else "ASYMMETRIC"
            low = self.text(node.args["low"], _IN + 1, _IN)
            return f"{first} {negated}BETWEEN {kind} {low} AND {self.text(node.args['high'], _IN + 1, right)}"
        word = "LIKE" if isinstance(node, exp.Like) else "SIMILAR TO"
        return f"{first} {negated}{word} {self.text(node.expression, _IN + 1, right)}"

    def _members(self, node: exp.Expr) -> str:
        inner = node.args.get("query")
        return self.query(inner) if inner is not None else self.listed(node.expressions)

    def _value(self, node: exp.Expr) -> str:
        print_node = _VALUES.get(type(node)) or self.others.get(type(node))
        if print_node is None:
            raise Unprintable(type(node).__name__)
        return print_node(self, node)

    def _column(self, node: exp.Expr) -> str:
        full_name = self.names.columns.get(id(node))
        if full_name is None:
            raise Unprintable(node.name)
        return quoted(*full_name)

    def _dot(self, node: exp.Expr) -> str:
        if id(node) in self.names.columns:
            return self._column(node)
        return f"({self.text(node.this)}).{quoted(node.expression.name)}"

    def _case(self, node: exp.Expr) -> str:
        if node.this is not None:
            tests = [exp.EQ(this=node.this, expression=branch.this) for branch in node.args["ifs"]]
        else:
            tests = [branch.this for branch in node.args["ifs"]]
        branches = " ".join(
            f"WHEN {self.text(test)} THEN {self.text(branch.args['true'])}"
            for test, branch in zip(tests, node.args["ifs"], strict=True)
        )
        default = node.args.get("default")
        return f"CASE {branches} ELSE {'NULL' if default is None else self.text(default)} END"

    def _map(self, node: exp.Expr) -> str:
        keys, values = node.args["keys"].expressions, node.args["values"].expressions
        return f"MAP[{self.listed(item for pair in zip(keys, values, strict=True) for item in pair)}]"


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _strength(node: exp.Expr) -> int:
    """The operator's binding strength; 0 if ``node`` is no operator."""
    if type(node) in _BINARY:
        return _BINARY[type(node)][0]
    if isinstance(node, exp.Not):
        return _TESTS.get(type(_bare(node.this)), _NOT)
    return _TESTS.get(type(node), _OTHER_OPERATORS.get(type(node), 0))


_OTHER_OPERATORS: dict[type[exp.Expr], int] = {exp.Neg: _SIGN, exp.Window: _OVER, exp.Exists: _EXISTS}


def _tested(node: exp.Expr) -> str:
    if isinstance(node, x.IsUnknown):
        return "UNKNOWN"
    if isinstance(node, x.IsJson):
        return f"JSON {node.args['kind']}"
    return "NULL" if isinstance(node.expression, exp.Null) else str(bool(node.expression.this)).upper()


def _interval(_: Printer, node: exp.Expr) -> str:
    if any(node.args.get(size) is not None for size in ("precision", "fraction")):
        raise Unprintable("INTERVAL")
    sign, end = "-" if node.args["negative"] else "", node.args.get("end")
    return f"INTERVAL {sign}{string(node.name)} {node.args['start']}" + (f" TO {end}" if end else "")


def _literal(_: Printer, node: exp.Expr) -> str:
    return string(node.name) if node.args["is_string"] else node.name.upper()


def _date_time(_: Printer, node: exp.Expr) -> str:
    kind = str(node.args["kind"])
    return f"{_LONG.get(kind, kind)} {string(node.name)}"


_LONG = {"TIMESTAMP_LTZ": "TIMESTAMP WITH LOCAL TIME ZONE"}


def _bracket(printer: Printer, node: exp.Expr) -> str:
    return f"{printer.text(node.this)}[{printer.listed(node.expressions)}]"


_VALUES: dict[type[exp.Expr], Callable[[Printer, exp.Expr], str]] = {
    exp.Column: Printer._column,
    exp.Dot: Printer._dot,
    exp.Case: Printer._case,
    exp.Map: Printer._map,
    exp.Literal: _literal,
    exp.Boolean: lambda _, node: str(bool(node.this)).upper(),
    exp.Null: lambda _, __: "NULL",
    exp.Star: lambda _, __: "*",
    exp.Var: lambda _, node: node.name,
    exp.Array: lambda printer, node: f"ARRAY[{printer.listed(node.expressions)}]",
    exp.Tuple: lambda printer, node: f"ROW({printer.listed(node.expressions)})",
    exp.Bracket: _bracket,
    exp.Subquery: lambda printer, node: f"({printer.query(node.this)})",
    x.BinaryLiteral: lambda _, node: f"X'{node.name.upper()}'",
    x.DateTimeLiteral: _date_time,
    x.IntervalLiteral: _interval,
}
