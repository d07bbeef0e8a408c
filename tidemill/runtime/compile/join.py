"""Join -> the join kernel: both sides' columns, keys of equal type, and the split residual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tidemill.changelog.rowkind import INSERT_ONLY, KIND_COLUMN, RETRACTIONS, RowKind
from tidemill.errors import InternalError
from tidemill.functions import casts
from tidemill.functions.comparison import MATCHING
from tidemill.operators.api import HASH_COLUMN
from tidemill.operators.join.null_aware import COUNTS
from tidemill.operators.join.operator import JoinSpec
from tidemill.operators.join.shape import JoinSide
from tidemill.physical import nodes as p
from tidemill.physical.conditions import loose_pair
from tidemill.physical.names import free_name
from tidemill.physical.traits.determinism import refuse_changes
from tidemill.plan.expressions import Call, Cast, Expr, FieldAccess, InputRef, Literal
from tidemill.plan.nodes import JoinKind
from tidemill.plan.predicates import TRUE, conjunction, conjuncts, or_null
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.residual import ResidualSplit
from tidemill.runtime.compile.row_names import NamedRows, named_rows
from tidemill.runtime.compile.schemas import keyed_schema, names
from tidemill.runtime.compile.shared import build, compile_node
from tidemill.runtime.compile.state_names import side_column
from tidemill.runtime.placement import partitioned_by
from tidemill.runtime.spark.expressions import Translator
from tidemill.types.logical import APPROXIMATE_TYPES, BOOLEAN, LogicalType, RowType
from tidemill.types.physical import arrow_type, quote
from tidemill.types.values import is_identity

_KINDS = {
    JoinKind.INNER: "INNER",
    JoinKind.LEFT: "LEFT",
    JoinKind.RIGHT: "RIGHT",
    JoinKind.FULL: "FULL",
    JoinKind.SEMI: "SEMI",
    JoinKind.ANTI: "ANTI",
}

_UNKNOWN = Literal(type=BOOLEAN, value=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinCondition:
    """Key expressions per side (over left fields + right fields) and what is left of the condition.

    ``null_aware``: the one key is NOT IN's. ``loose``: what must be equal, too, unless either is NULL.
    ``names``: per side what the keys are called.
    """

    left: tuple[Expr, ...]
    right: tuple[Expr, ...]
    null_safe: tuple[bool, ...]
    residual: Expr | None
    null_aware: bool = False
    loose: tuple[tuple[Expr, Expr], ...] = ()
    names: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def ordered(self, places: Sequence[int]) -> JoinCondition:
        """With the keys in this order."""
        left, right = (tuple(names[i] for i in places) if names else () for names in self.names)
        return replace(
            self,
            left=tuple(self.left[i] for i in places),
            right=tuple(self.right[i] for i in places),
            null_safe=tuple(self.null_safe[i] for i in places),
            names=(left, right),
        )


@build.register
def _(node: p.Join, context: CompileContext, sequenced: bool) -> g.ExecNode:
    refuse_changes(node, (node.residual,), "in a join's condition")
    inputs = (compile_node(node.left, context, False), compile_node(node.right, context, False))
    rows = named_rows(context.state, "join", node, *node.inputs)
    joined = join_parts(node, inputs, context, rows)
    spec = replace(
        joined.spec,
        left=_marked(joined.spec.left, rows),
        right=_marked(joined.spec.right, rows),
        update_before=RowKind.UPDATE_BEFORE in node.traits.kinds,
        insert_only=node.traits.kinds == INSERT_ONLY,
        sequence=sequenced,
    )
    left, right = joined.ports
    return g.Keyed(
        columns=names(node.fields),
        kinds=node.traits.kinds,
        sequenced=sequenced,
        operator=context.add_operator("join", node, spec, rows=rows),
        spec=spec,
        ports=(left, right, *([_counts(spec, right)] if spec.null_aware else [])),
        schema=keyed_schema(node.fields, node.traits.kinds, sequenced),
        single=not joined.condition.left,
        partitioned=partitioned(node, joined.condition),
    )


def _marked(side: JoinSide, rows: NamedRows) -> JoinSide:
    return replace(side, late=rows.late_marked(side.late)) if side.retracts else side


def _counts(spec: JoinSpec, right: g.Port) -> g.Port:
    """The input that tells every partition how many right rows there are."""
    (key,) = right.keys
    reference = dict(zip(right.columns, right.references, strict=True))[key]
    return g.Port(
        input=right.input,
        references=(reference,),
        columns=(key,),
        keys=(),
        schema=COUNTS,
        summary=spec.counts,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinParts:
    """A join of ``ports``; its ``spec`` says nothing yet of changes."""

    spec: JoinSpec
    ports: tuple[g.Port, g.Port]
    condition: JoinCondition


def join_parts(
    node: p.Join, inputs: tuple[g.ExecNode, g.ExecNode], context: CompileContext, rows: NamedRows
) -> JoinParts:
    """``rows``: what the sides' columns are called."""
    condition = join_condition(node, inputs, rows)
    split = ResidualSplit(left_width=len(node.left.fields), names=rows)
    residual = None if condition.residual is None else split.split(condition.residual)
    loose = tuple((split.column(a, 0), split.column(b, 1)) for a, b in condition.loose)
    sides = (
        keyed_side(node, 0, inputs[0], condition, split, context),
        keyed_side(node, 1, inputs[1], condition, split, context),
    )
    spec = JoinSpec(
        kind=_KINDS[node.kind],
        left=sides[0][0],
        right=sides[1][0],
        null_safe=condition.null_safe,
        null_aware=condition.null_aware,
        loose=loose,
        residual=residual,
    )
    return JoinParts(spec=spec, ports=(sides[0][1], sides[1][1]), condition=condition)


_CARRIERS = {
    JoinKind.INNER: (True, True),
    JoinKind.LEFT: (True, False),
    JoinKind.RIGHT: (False, True),
    JoinKind.FULL: (False, False),
    JoinKind.SEMI: (True, False),
    JoinKind.ANTI: (True, False),
}
"""Per side, whether its key columns have the key's value in every row; a padded side has NULL."""


def partitioned(node: p.Join, condition: JoinCondition) -> tuple[frozenset[str], ...]:
    """Per key the output columns that are it; a computed key goes no further."""
    left, right = _CARRIERS[node.kind]
    return tuple(
        frozenset(
            node.fields[key.index].name
            for key, carries in ((a, left), (b, right))
            if carries and isinstance(key, InputRef)
        )
        for a, b in zip(condition.left, condition.right, strict=True)
    )


def join_condition(node: p.Join, inputs: tuple[g.ExecNode, g.ExecNode], rows: NamedRows) -> JoinCondition:
    """The keys are in the order of those that are stored. If none are, one of the inputs decides."""
    condition = _condition(node)
    if rows.late is None:
        return _named(_aligned(condition, inputs), rows)
    said = [(rows.said(a), rows.said(b)) for a, b in zip(condition.left, condition.right, strict=True)]
    condition = _named(condition.ordered(sorted(range(len(said)), key=lambda i: said[i])), rows)
    stored = {name: place for place, name in enumerate(rows.key_order)}
    own = condition.names[0]
    if stored.keys() <= set(own) and stored:
        # Rows of windows are not kept by the window's columns.
        return condition.ordered(sorted(range(len(own)), key=lambda i: stored.get(own[i], len(own))))
    return _aligned(condition, inputs)


def _named(condition: JoinCondition, rows: NamedRows) -> JoinCondition:
    width = len(rows.fields[0])
    left, right = (
        _key_names(keys, number, number * width, rows)
        for number, keys in enumerate((condition.left, condition.right))
    )
    return replace(condition, names=(left, right))


def _key_names(keys: Sequence[Expr], number: int, offset: int, rows: NamedRows) -> tuple[str, ...]:
    """A field that is a key is called as it is, once; other keys are columns of their own."""
    found: list[str] = []
    for place, key in enumerate(keys):
        own = rows.fields[number][key.index - offset].name if isinstance(key, InputRef) else ""
        # A column that equals two of the other side is carried twice: state names its columns once.
        if not own or own in found:
            own = free_name(_computed_key(key, number, place, rows), found)
        found.append(own)
    return tuple(found)


def _computed_key(key: Expr, number: int, place: int, rows: NamedRows) -> str:
    if rows.late is None:
        return f"${side_column(number, place)}k"
    return rows.computed(key, f"$k{number}.", place)


def _aligned(condition: JoinCondition, inputs: tuple[g.ExecNode, g.ExecNode]) -> JoinCondition:
    """The keys in the order by which one of the inputs is partitioned already, if there is such."""
    offsets = (0, len(inputs[0].columns))
    for below, keys, offset in zip(inputs, (condition.left, condition.right), offsets, strict=True):
        columns = [below.columns[k.index - offset] if isinstance(k, InputRef) else "" for k in keys]
        order = [
            next((i for i, c in enumerate(columns) if c in names), -1)
            for names in partitioned_by(below) or ()
        ]
        if sorted(order) == list(range(len(columns))):
            return condition.ordered(order)
    return condition


def _condition(node: p.Join) -> JoinCondition:
    """The keys of NOT IN cannot be keys of the join, because NULL matches every value. A single key is an
    exception: all partitions know whether the other side has a NULL. Otherwise rows are matched among the
    rows with equal other keys."""
    fields = (*node.left.fields, *node.right.fields)
    width = len(node.left.fields)
    left = [InputRef(index=i, type=fields[i].type) for i in node.left_keys]
    right = [InputRef(index=width + i, type=fields[width + i].type) for i in node.right_keys]
    pairs = [_unified(a, b) for a, b in zip(left, right, strict=True)]
    residual = [] if node.residual is None else [node.residual]
    null_safe, by_identity = node.null_safe, node.by_identity or (False,) * len(pairs)
    if node.counts_nulls:
        null_safe = (True,)
    elif node.null_aware:
        aware, pairs = pairs[: node.null_aware], pairs[node.null_aware :]
        null_safe, by_identity = null_safe[node.null_aware :], by_identity[node.null_aware :]
        residual += [or_null(a, b) for a, b in aware]
    keys, others = _keys(pairs, null_safe, by_identity)
    residual += others
    loose = _loose(node, residual)
    return JoinCondition(
        left=tuple(k.left for k in keys),
        right=tuple(k.right for k in keys),
        null_safe=tuple(k.null_safe for k in keys),
        residual=conjunction(residual) if residual and not loose else None,
        null_aware=node.counts_nulls,
        loose=loose,
    )


def _loose(node: p.Join, residual: list[Expr]) -> tuple[tuple[Expr, Expr], ...]:
    """The pairs that ``residual`` wants equal unless either is NULL, where that is all it says."""
    if node.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        return ()
    width = len(node.left.fields)
    found = [loose_pair(part, width) for x in residual for part in conjuncts(x)]
    pairs = [_unified(*pair) for pair in found if pair is not None and not _has_float_rows(pair)]
    return tuple(pairs) if len(pairs) == len(found) else ()


def _has_float_rows(pair: tuple[Expr, Expr]) -> bool:
    """Whether ROWs are compared that may be equal without being one value."""
    return any(isinstance(x.type, RowType) and not is_identity(x.type) for x in pair)


def _keys(
    pairs: list[tuple[Expr, Expr]], null_safe: tuple[bool, ...], by_identity: tuple[bool, ...]
) -> tuple[list[_Key], list[Expr]]:
    """What the kernel may match by identity, and what it must compare pair by pair.

    Equality is not identity where floats are: they become numbers for which it is, and ROWs their fields.
    """
    keys: list[_Key] = []
    others: list[Expr] = []
    for (a, b), safe, same in zip(pairs, null_safe, by_identity, strict=True):
        if same or is_identity(a.type):
            keys.append(_Key(left=a, right=b, null_safe=safe))
        elif safe and _is_float(a) and _is_float(b):
            # NULL is NULL's key, NaN is nothing's: a second key tells them apart.
            keys.append(_Key(left=_matching(a), right=_matching(b), null_safe=True))
            keys.append(_Key(left=_comparable(a), right=_comparable(b), null_safe=False))
        elif isinstance(a.type, RowType):
            # A field that is NULL on both sides is no difference, a row that is NULL on one side is.
            fields = [(_field(a, i), _field(b, i)) for i in range(len(a.type.fields))]
            found, rest = _keys(fields, (True,) * len(fields), (False,) * len(fields))
            known = _Key(left=_known(a, safe), right=_known(b, safe), null_safe=False)
            keys, others = [*keys, known, *found], others + rest
        elif safe:
            others.append(_call("IS NOT DISTINCT FROM", a, b))
        else:
            keys.append(_Key(left=_matching(a), right=_matching(b), null_safe=False))
    return keys, others


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    left: Expr
    right: Expr
    null_safe: bool


def _field(row: Expr, place: int) -> Expr:
    assert isinstance(row.type, RowType)
    kind = row.type.fields[place].type
    return FieldAccess(operand=row, index=place, type=kind.with_nullable(kind.nullable or row.type.nullable))


def _known(row: Expr, safe: bool) -> Expr:
    """The same for rows that may be equal; NULL for a row that equals nothing."""
    return _call("IS NULL", row) if safe else _call("CASE", _call("IS NOT NULL", row), TRUE, _UNKNOWN)


def _matching(key: Expr) -> Expr:
    return Call(function=MATCHING, args=(key,), type=key.type.with_nullable(True))


def _is_float(key: Expr) -> bool:
    return isinstance(key.type, APPROXIMATE_TYPES)


def _comparable(key: Expr) -> Expr:
    """TRUE, and NULL for NaN."""
    known = _call("OR", _call("IS NULL", key), _call("=", key, key))
    return _call("CASE", known, TRUE, _UNKNOWN)


def _call(function: str, *args: Expr) -> Expr:
    return Call(function=function, args=args, type=BOOLEAN)


def _unified(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Both sides under one carrier type: keys are compared and hashed as they are."""
    if arrow_type(left.type) == arrow_type(right.type):
        return left, right
    common = casts.common_type((left.type, right.type))
    if common is None:
        raise InternalError(f"join keys of types {left.type} and {right.type} have no common type")
    return _as(left, common), _as(right, common)


def _as(expr: Expr, common: LogicalType) -> Expr:
    same = arrow_type(expr.type) == arrow_type(common)
    return expr if same else Cast(operand=expr, type=common.with_nullable(expr.type.nullable), implicit=True)


def keyed_side(
    node: p.Join,
    number: int,
    below: g.ExecNode,
    condition: JoinCondition,
    split: ResidualSplit,
    context: CompileContext,
) -> tuple[JoinSide, g.Port]:
    """The side's spec and port: its fields, then computed keys and residual parts. If another query may have
    other keys, their order does not depend on the query. A side that only decides carries no fields but its
    keys and the columns of the residual condition."""
    side, rows = node.inputs[number], split.names
    keys, key_names = (condition.left, condition.right)[number], condition.names[number]
    offset = 0 if number == 0 else len(node.left.fields)
    decides = number == 1 and node.kind in (JoinKind.SEMI, JoinKind.ANTI)
    places = list(range(len(side.fields)))
    if decides:
        places = sorted(split.fields[1] | {k.index - offset for k in keys if isinstance(k, InputRef)})
    fields = {rows.fields[number][i].name: i for i in places}
    computed = {name: key for name, key in zip(key_names, keys, strict=True) if name not in fields}
    computed |= split.parts[number]
    carried = tuple([*fields, *computed] if rows.late is None else sorted([*fields, *computed]))
    types = {name: arrow_type(side.fields[i].type) for name, i in fields.items()}
    types |= {name: arrow_type(e.type) for name, e in computed.items()}
    spec = JoinSide(
        columns=tuple((name, types[name]) for name in carried),
        keys=key_names,
        output=() if decides else tuple(fields),
        retracts=bool(side.traits.kinds & RETRACTIONS),
        ttl=(node.left_ttl, node.right_ttl)[number],
        late=rows.late_among(fields),
    )
    source = _with_computed(below, offset, computed, context) if computed else below
    return spec, g.Port(
        input=source,
        references=tuple(below.columns[fields[name]] if name in fields else name for name in carried),
        columns=carried,
        keys=key_names,
        schema=_port_schema(spec, side.traits.kinds),
    )


def _with_computed(
    below: g.ExecNode, offset: int, computed: dict[str, Expr], context: CompileContext
) -> g.ExecNode:
    """``below`` with the computed columns behind its own; they refer to its fields from ``offset`` on."""
    translator = Translator(columns=("",) * offset + below.columns, zone=context.zone)
    return g.Select(
        columns=(*below.columns, *computed),
        kinds=below.kinds,
        sequenced=below.sequenced,
        input=below,
        expressions=(*map(quote, below.columns), *(translator.sql(e) for e in computed.values())),
        references=(*below.columns, *[None] * len(computed)),
    )


def _port_schema(side: JoinSide, kinds: frozenset[RowKind]) -> pa.Schema:
    fields = [pa.field(n, t) for n, t in side.columns]
    if kinds != INSERT_ONLY:
        fields.append(pa.field(KIND_COLUMN, pa.int8()))
    return pa.schema([*fields, pa.field(HASH_COLUMN, pa.uint64())])
