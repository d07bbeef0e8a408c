"""Lookup joins: FOR SYSTEM_TIME AS OF a processing time looks a row's keys up in the current table."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.catalog.table import CatalogTable
from tidemill.connectors.lookup.options import Retry
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.functions.casts import common_type
from tidemill.physical import nodes as p
from tidemill.physical.conditions import conjunction, substituted
from tidemill.physical.finish import finish, references, select
from tidemill.physical.joins.planning import EquiKey, split_condition
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Cast, Expr, InputRef
from tidemill.plan.rewrite import shift_inputs
from tidemill.types.logical import BOOLEAN, Field
from tidemill.types.physical import arrow_type


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """``columns``: for each field of the right side the scan's column. ``condition``: over the right
    fields."""

    scan: n.Scan
    columns: tuple[int, ...]
    condition: Expr | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """The lookup in ``table``. ``columns``: of the result. ``keys``: expressions over the left fields in the
    column's type, each with the index of its column. ``condition``: over left fields, then columns."""

    table: CatalogTable
    options: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    keys: tuple[tuple[Expr, int], ...]
    condition: Expr | None
    retry: Retry | None


def lookup_of(node: n.TemporalJoin) -> Lookup:
    table = _table(node)
    width = len(node.left.fields)
    keys, residual = split_condition(node.condition, width)
    by_column: dict[Expr, EquiKey] = {}
    for key in keys:
        if isinstance(key.right, InputRef) and not key.null_safe:
            by_column.setdefault(key.right, key)
    usable = list(by_column.values())
    if not usable:
        path = table.scan.table.path
        raise ValidationError(
            f"Temporal table join requires an equality condition on fields of table [{path}].",
            position=node.position,
        )
    others = [_equality(k, width) for k in keys if k not in usable]
    own = [] if table.condition is None else [shift_inputs(table.condition, width)]
    condition = conjunction([*others, *residual, *own])
    return Lookup(
        table=table.scan.table,
        options=table.scan.options,
        columns=tuple(table.scan.columns[i] for i in table.columns),
        keys=tuple((_as_column(k, node), k.right.index) for k in usable if isinstance(k.right, InputRef)),
        condition=condition,
        retry=node.retry,
    )


def plan_lookup_join(node: n.TemporalJoin, left: p.PhysicalNode) -> p.PhysicalNode:
    lookup = lookup_of(node)
    width = len(node.left.fields)
    wide, key_columns = _with_keys(left, [key for key, _ in lookup.keys])
    added = len(wide.fields) - width
    join = finish(
        p.LookupJoin(
            fields=(*wide.fields, *_renamed_apart(node.fields[width:], wide.fields)),
            input=wide,
            table=lookup.table,
            options=lookup.options,
            columns=lookup.columns,
            kind=node.kind,
            keys=tuple(
                (key_column, column) for key_column, (_, column) in zip(key_columns, lookup.keys, strict=True)
            ),
            condition=None if lookup.condition is None else _behind(lookup.condition, width, added),
            retry=lookup.retry,
        )
    )
    output_columns = (*range(width), *(len(wide.fields) + i for i in range(len(node.right.fields))))
    return select(join, output_columns, node.fields)


def _table(node: n.TemporalJoin) -> _Table:
    """The right side as a table with a choice of its columns and a condition."""
    conditions: list[Expr] = []
    columns: tuple[Expr, ...] = references(node.right.fields)
    below = node.right
    while not isinstance(below, n.Scan):
        if isinstance(below, n.Project) and all(isinstance(x, InputRef) for x in below.expressions):
            columns = tuple(substituted(x, below.expressions) for x in columns)
            conditions = [substituted(x, below.expressions) for x in conditions]
        elif isinstance(below, n.Filter):
            conditions.append(below.condition)
        elif not isinstance(below, n.Watermark):
            raise NotSupportedError(
                "FOR SYSTEM_TIME AS OF a processing time is supported for tables, and views that filter one",
                position=node.position,
            )
        below = below.input
    table_columns = [x.index for x in columns if isinstance(x, InputRef)]
    if any(x.index not in table_columns for c in conditions for x in c.walk() if isinstance(x, InputRef)):
        raise NotSupportedError(
            "A lookup join with a view that filters by columns it does not give is not supported",
            position=node.position,
        )
    at = [
        InputRef(type=f.type, index=table_columns.index(i))
        if i in table_columns
        else InputRef(type=f.type, index=0)
        for i, f in enumerate(below.fields)
    ]
    condition = conjunction([substituted(c, at) for c in conditions])
    return _Table(scan=below, columns=tuple(table_columns), condition=condition)


def _equality(key: EquiKey, width: int) -> Expr:
    function = "IS NOT DISTINCT FROM" if key.null_safe else "="
    return Call(type=BOOLEAN, function=function, args=(key.left, shift_inputs(key.right, width)))


def _as_column(key: EquiKey, node: n.TemporalJoin) -> Expr:
    """The left side of a key in the type of the table's column, in which keys are looked up."""
    left, right = key.left, key.right
    if arrow_type(left.type) == arrow_type(right.type):
        return left
    common = common_type((left.type, right.type))
    if common is None or arrow_type(common) != arrow_type(right.type):
        name = node.right.fields[right.index].name if isinstance(right, InputRef) else ""
        raise NotSupportedError(
            f"A lookup join by a key of type {left.type} on column '{name}' of type {right.type}",
            position=node.position,
            hint=f"CAST the key to {right.type.with_nullable(True)}.",
        )
    return Cast(operand=left, type=right.type.with_nullable(left.type.nullable), implicit=True)


def _with_keys(left: p.PhysicalNode, keys: list[Expr]) -> tuple[p.PhysicalNode, list[int]]:
    """``left`` with a column for each key."""
    added = [k for k in dict.fromkeys(keys) if not isinstance(k, InputRef)]
    width = len(left.fields)
    key_columns = [k.index if isinstance(k, InputRef) else width + added.index(k) for k in keys]
    if not added:
        return left, key_columns
    names = _renamed_apart(tuple(Field(f"$f{width + i}", x.type) for i, x in enumerate(added)), left.fields)
    projections = (*references(left.fields), *added)
    fields = (*left.fields, *names)
    return finish(p.Calc(fields=fields, input=left, projections=projections)), key_columns


def _renamed_apart(fields: tuple[Field, ...], others: tuple[Field, ...]) -> tuple[Field, ...]:
    """``fields`` under names that ``others`` do not have."""
    used_names = {f.name for f in others}
    renamed = []
    for f in fields:
        name = f.name
        while name in used_names:
            name += "_0"
        used_names.add(name)
        renamed.append(Field(name, f.type))
    return tuple(renamed)


def _behind(condition: Expr, width: int, added: int) -> Expr:
    """``condition`` with the right side's fields shifted ``added`` to the right."""
    if not added:
        return condition
    indexes = {x.index: x.type for x in condition.walk() if isinstance(x, InputRef)}
    size = max(indexes) + 1
    moved = [InputRef(type=indexes.get(i, BOOLEAN), index=i if i < width else i + added) for i in range(size)]
    return substituted(condition, moved)
