"""Operators and special syntax with a fixed meaning: arithmetic, comparison, logic, CASE, CAST."""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.functions import casts
from tidemill.functions.signatures import calcite_text
from tidemill.plan.binder.expressions import literals
from tidemill.plan.binder.expressions.binding import ExpressionBinder, Handler, row_field
from tidemill.plan.expressions import Call, Cast, Expr, Literal
from tidemill.sql.expressions import BinaryLiteral, IsUnknown, TypeSpec
from tidemill.sql.positions import position_of
from tidemill.types import logical as t

BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.DPipe: "||",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}


def _binary(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expr:
        return binder.call(name, (binder.bind(node.this), binder.bind(node.expression)), node)

    return bind


def _equality(name: str) -> Handler:
    """= and <>. Lists of values, ``(a, b) = (c, d)``, are compared field by field, where NULL is unknown.
    ROW values are compared as a whole."""

    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expr:
        left, right = binder.bind(node.this), binder.bind(node.expression)
        if not _are_lists(left, right):
            return binder.call(name, (left, right), node)
        same = _compare_field_by_field(binder, left, right, node)
        return same if name == "=" else binder.call("NOT", (same,), node)

    return bind


def _compare_field_by_field(binder: ExpressionBinder, left: Expr, right: Expr, node: exp.Expr) -> Expr:
    if not _are_lists(left, right):
        return binder.call("=", (left, right), node)
    assert isinstance(left, Call)
    assert isinstance(right, Call)
    parts = [_compare_field_by_field(binder, a, b, node) for a, b in zip(left.args, right.args, strict=True)]
    return _connected(binder, "AND", parts, node)


def _are_lists(*operands: Expr) -> bool:
    """Whether all operands are lists of equal length, written out in the query. A ROW column is no list."""
    written = [len(x.args) for x in operands if isinstance(x, Call) and x.function == "ROW"]
    return len(written) == len(operands) and len(set(written)) == 1


def _connector(name: str) -> Handler:
    """AND and OR: ``a AND b AND c`` is one flat chain."""

    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expr:
        parts = [binder.bind(n) for n in _chain(node, type(node))]
        return _connected(binder, name, parts, node)

    return bind


DEEP = 32
"""A longer chain is halved instead of nested to the left, as every pass over it recurses."""


def _connected(binder: ExpressionBinder, name: str, parts: list[Expr], node: exp.Expr) -> Expr:
    if len(parts) <= DEEP:
        return reduce(lambda a, b: binder.call(name, (a, b), node), parts)
    middle = len(parts) // 2
    halves = (parts[:middle], parts[middle:])
    left, right = (_connected(binder, name, half, node) for half in halves)
    return binder.call(name, (left, right), node)


def _chain(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    parts: list[exp.Expr] = []
    while isinstance(node, kind):
        parts.append(node.expression)
        node = node.this
    return [node, *reversed(parts)]


def _not(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    inner = node.this
    name = _is_name(inner, "IS NOT ") if isinstance(inner, exp.Is) else ""
    if name:
        return binder.call(name, (binder.bind(inner.this),), node)
    if isinstance(inner, IsUnknown):
        return binder.call("IS NOT NULL", (binder.bind(inner.this),), node)
    return binder.call("NOT", (binder.bind(node.this),), node)


def _negate(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    """A minus before a number is part of the literal: -2147483648 is an INT."""
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return literals.number(node.this.this, position_of(node), negative=True)
    return binder.call("UNARY -", (binder.bind(node.this),), node)


def _paren(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    return binder.bind(node.this)


def _literal(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    text = node.this
    return literals.string(text) if node.args.get("is_string") else literals.number(text, position_of(node))


def _case(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    operand = node.args.get("this")
    args: list[Expr] = []
    for branch in node.args["ifs"]:
        args.append(_case_condition(binder, operand, branch))
        args.append(binder.bind(branch.args["true"]))
    default = node.args.get("default")
    args.append(binder.bind(default) if default is not None else literals.null())
    return binder.call("CASE", tuple(args), node)


def _case_condition(binder: ExpressionBinder, operand: exp.Expr | None, branch: exp.Expr) -> Expr:
    condition = binder.bind(branch.this)
    if operand is None:
        return condition
    return binder.call("=", (binder.bind(operand), condition), branch)


def _cast(safe: bool) -> Handler:
    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expr:
        target = node.args["to"]
        assert isinstance(target, TypeSpec)
        return explicit_cast(binder.bind(node.this), target.logical, safe, node)

    return bind


def explicit_cast(operand: Expr, target: t.LogicalType, safe: bool, node: exp.Expr) -> Expr:
    """CAST or TRY_CAST. The result is nullable if the operand is, or if the cast can give NULL."""
    if isinstance(operand, Literal) and operand.value is None:
        return literals.null(target)
    if not casts.can_cast(operand.type, target):
        raise ValidationError(
            f"Cast function cannot convert value of type {calcite_text(operand.type)}"
            f" to type {calcite_text(target)}",
            position=position_of(node),
        )
    nullable = operand.type.nullable or safe
    return Cast(type=target.with_nullable(nullable), operand=operand, safe=safe)


def _is(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    name = _is_name(node, "IS ")
    if not name:
        raise NotSupportedError(f"IS {node.expression.sql()} is not supported", position=position_of(node))
    return binder.call(name, (binder.bind(node.this),), node)


def _is_name(node: exp.Expr, prefix: str) -> str:
    tested = node.expression
    if isinstance(tested, exp.Null):
        return f"{prefix}NULL"
    if isinstance(tested, exp.Boolean):
        return f"{prefix}TRUE" if tested.this else f"{prefix}FALSE"
    return ""


def _is_unknown(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    operand = binder.bind(node.this)
    if not isinstance(operand.type, t.BooleanType | t.NullType):
        raise ValidationError("IS UNKNOWN expects a BOOLEAN", position=position_of(node))
    return binder.call("IS NULL", (operand,), node)


def _between(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    """x BETWEEN a AND b is x >= a AND x <= b, as in Flink's plans."""
    operand = binder.bind(node.this)
    low, high = binder.bind(node.args["low"]), binder.bind(node.args["high"])
    inside = _within(binder, node, operand, low, high)
    if node.args.get("symmetric"):
        return binder.call("OR", (inside, _within(binder, node, operand, high, low)), node)
    return inside


def _within(binder: ExpressionBinder, node: exp.Expr, operand: Expr, low: Expr, high: Expr) -> Expr:
    bounds = (binder.call(">=", (operand, low), node), binder.call("<=", (operand, high), node))
    return binder.call("AND", bounds, node)


def _tuple(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    return row(binder, binder.bind_all(node.expressions), node)


def row(binder: ExpressionBinder, args: tuple[Expr, ...], node: exp.Expr) -> Expr:
    return binder.call("ROW", args, node)


def _constructor(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expr:
        return binder.call(name, binder.bind_all(node.expressions), node)

    return bind


def _map(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    """MAP[k, v, ...]: the parser gives keys and values apart, the function takes them in turns."""
    keys = node.args["keys"].expressions
    entries = zip(keys, node.args["values"].expressions, strict=True)
    return binder.call("MAP", binder.bind_all([x for entry in entries for x in entry]), node)


def _bracket(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    """array[i], map[key], (row)[i]: indexes count from 1."""
    operand = binder.bind(node.this)
    if isinstance(operand.type, t.RowType):
        return _row_item(binder, operand, node)
    return binder.call("ITEM", (operand, binder.bind(node.expressions[0])), node)


def _row_item(binder: ExpressionBinder, operand: Expr, node: exp.Expr) -> Expr:
    kind = operand.type
    assert isinstance(kind, t.RowType)
    index = binder.bind(node.expressions[0])
    index_value = index.value if isinstance(index, Literal) and isinstance(index.type, t.INTEGER_TYPES) else 0
    number = index_value if isinstance(index_value, int) else 0
    if not 1 <= number <= len(kind.fields):
        raise ValidationError(
            f"Cannot infer type of field at position {number} within ROW type: {calcite_text(kind)}",
            position=position_of(node),
        )
    return row_field(operand, number - 1)


def _column(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    assert isinstance(node, exp.Column)
    return binder.column(tuple(p.name for p in node.parts), node)


def _dot(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    """a.b.c.d beyond what one Column holds, or a field of any ROW expression."""
    assert isinstance(node, exp.Dot)
    names: list[str] = []
    root: exp.Expr = node
    while isinstance(root, exp.Dot):
        names.insert(0, root.expression.name)
        root = root.this
    if isinstance(root, exp.Column):
        parts = (*(p.name for p in root.parts), *names)
        return binder.column(parts, node)
    return binder.fields_of(binder.bind(root), tuple(names), position_of(node))


HANDLERS: dict[type[exp.Expr], Handler] = {
    **{node: _binary(name) for node, name in BINARY.items()},
    **{node: _equality(BINARY[node]) for node in (exp.EQ, exp.NEQ)},
    exp.And: _connector("AND"),
    exp.Or: _connector("OR"),
    exp.Not: _not,
    exp.Neg: _negate,
    exp.Paren: _paren,
    exp.Literal: _literal,
    BinaryLiteral: lambda _, node: literals.binary(node.this, position_of(node)),
    exp.Boolean: lambda _, node: literals.boolean(bool(node.this)),
    exp.Null: lambda _, node: literals.null(),
    exp.Case: _case,
    exp.Cast: _cast(safe=False),
    exp.TryCast: _cast(safe=True),
    exp.Is: _is,
    IsUnknown: _is_unknown,
    exp.Between: _between,
    exp.Tuple: _tuple,
    exp.Array: _constructor("ARRAY"),
    exp.Map: _map,
    exp.Bracket: _bracket,
    exp.Column: _column,
    exp.Dot: _dot,
}
