"""Attributes of joins."""

from __future__ import annotations

from collections.abc import Iterable

from tidemill.physical import nodes as p
from tidemill.physical.conditions import conjuncts
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.names import Attributes, bracket, names
from tidemill.physical.explain.attributes.windows import attached, emit_attributes
from tidemill.physical.explain.printer import Form, Printer
from tidemill.physical.explain.view.nodes import BundledJoin
from tidemill.physical.traits.keys import upsert_keys_in_key_group
from tidemill.plan.expressions import Call, Expr, InputRef
from tidemill.plan.nodes import JoinKind
from tidemill.types.logical import BOOLEAN


@attributes.register
def _(node: p.Join, form: Form) -> Attributes:
    by_left, by_right = node.partition_keys
    return [
        ("joinType", f"[{node.kind.value}]"),
        ("where", f"[{_where(node, form)}]"),
        ("select", f"[{names(node)}]"),
        ("leftInputSpec", f"[{_spec(node.left, by_left)}]"),
        ("rightInputSpec", f"[{_spec(node.right, by_right)}]"),
    ]


@attributes.register
def _(node: BundledJoin, form: Form) -> Attributes:
    return [*attributes.dispatch(p.Join)(node, form), ("miniBatch", "[true]")]


def _spec(side: p.PhysicalNode, keys: tuple[int, ...]) -> str:
    """Flink's ``leftInputSpec``: the unique keys of a side, which reduce the join's state."""
    unique_keys = upsert_keys_in_key_group(side)
    if not unique_keys:
        return "NoUniqueKey"
    contained = any(k <= frozenset(keys) for k in unique_keys)
    return "JoinKeyContainsUniqueKey" if contained else "HasUniqueKey"


@attributes.register
def _(node: p.IntervalJoin, form: Form) -> Attributes:
    bounds = node.bounds
    times = (
        f"isRowTime={str(bounds.rowtime).lower()}, leftLowerBound={bounds.lower}, "
        f"leftUpperBound={bounds.upper}, leftTimeIndex={bounds.left}, rightTimeIndex={bounds.right}"
    )
    return [
        ("joinType", f"[{_INTERVAL_KINDS[node.kind]}]"),
        ("windowBounds", f"[{times}]"),
        ("where", f"[{_where(node, form)}]"),
        ("select", f"[{names(node)}]"),
    ]


@attributes.register
def _(node: p.TemporalJoin, form: Form) -> Attributes:
    both = (*node.left.fields, *node.right.fields)
    printer = Printer.over(node.fields if len(node.fields) == len(both) else both, form)
    condition, versions = join_condition(node), _version_condition(node)
    parts = [versions] if condition is None else [*conjuncts(condition), versions]
    return [
        ("joinType", f"[{node.kind.value}]"),
        ("where", f"[{printer.text(Call(type=BOOLEAN, function='AND', args=tuple(parts)))}]"),
        ("select", f"[{names(node)}]"),
    ]


@attributes.register
def _(node: p.LookupJoin, form: Form) -> Attributes:
    printer = Printer.over(node.fields, form)
    keys = [f"{node.columns[column]}={node.input.fields[own].name}" for own, column in node.keys]
    where = [] if node.condition is None else [("where", f"[{printer.text(node.condition)}]")]
    return [
        ("table", f"[{node.table.path}]"),
        ("joinType", f"[{node.kind.value}]"),
        ("lookup", bracket(keys)),
        *where,
        ("select", f"[{names(node)}]"),
    ]


def _version_condition(node: p.TemporalJoin) -> Expr:
    """The condition on times and keys that finds a version, as Flink prints it."""
    fields, width = (*node.left.fields, *node.right.fields), len(node.left.fields)

    def call(name: str, columns: Iterable[int]) -> Expr:
        args = tuple(InputRef(type=fields[i].type, index=i) for i in columns)
        return Call(type=BOOLEAN, function=f"__TEMPORAL_JOIN_{name}", args=args)

    times = tuple(InputRef(type=fields[i].type, index=i) for i in (node.left_time, width + node.right_time))
    keys = (
        call("CONDITION_PRIMARY_KEY", (width + i for i in node.version_key)),
        call("LEFT_KEY", node.left_keys),
        call("RIGHT_KEY", (width + i for i in node.right_keys)),
    )
    return Call(type=BOOLEAN, function="__TEMPORAL_JOIN_CONDITION", args=(*times, *keys))


_INTERVAL_KINDS = {
    JoinKind.INNER: "InnerJoin",
    JoinKind.LEFT: "LeftOuterJoin",
    JoinKind.RIGHT: "RightOuterJoin",
    JoinKind.FULL: "FullOuterJoin",
}


@attributes.register
def _(node: p.WindowJoin, form: Form) -> Attributes:
    return [
        ("leftWindow", f"[{attached(node.left_window, node.left)}]"),
        ("rightWindow", f"[{attached(node.right_window, node.right)}]"),
        *emit_attributes(node.emit),
        ("joinType", f"[{node.kind.value}]"),
        ("where", f"[{_where(node, form)}]"),
        ("select", f"[{names(node)}]"),
    ]


def _where(node: p.Join, form: Form) -> str:
    both = (*node.left.fields, *node.right.fields)
    printer = Printer.over(node.fields if len(node.fields) == len(both) else both, form)
    condition = join_condition(node)
    return "true" if condition is None else printer.text(condition)


def join_condition(node: p.Join) -> Expr | None:
    """Keys and residual as one condition over left fields, then right fields."""
    fields = (*node.left.fields, *node.right.fields)

    def column(index: int) -> InputRef:
        return InputRef(type=fields[index].type, index=index)

    parts: list[Expr] = []
    keys = zip(node.left_keys, node.right_keys, node.null_safe, strict=True)
    for number, (left, right, null_safe) in enumerate(keys):
        if isinstance(node, p.WindowJoin) and node.is_window(left, right):
            continue
        sides = (column(left), column(right + len(node.left.fields)))
        operator = "IS NOT DISTINCT FROM" if null_safe else "="
        equals = Call(type=BOOLEAN, function=operator, args=sides)
        parts.append(_null_aware(equals, sides) if number < node.null_aware else equals)
    if node.residual is not None:
        parts.append(node.residual)
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Call(type=BOOLEAN, function="AND", args=tuple(parts))


def _null_aware(equals: Expr, sides: tuple[InputRef, ...]) -> Expr:
    nulls = [Call(type=BOOLEAN, function="IS NULL", args=(s,)) for s in sides if s.type.nullable]
    return Call(type=BOOLEAN, function="OR", args=(*nulls, equals)) if nulls else equals
