"""Finds the keys of an aggregation with few known values, for ``distinct_reuse``.

    WHERE k IN ('A', 'B')                           k is 'A' or 'B'
    CASE WHEN c THEN 'x' ELSE 'y' END AS k          k is 'x' or 'y'

The values follow from conditions on a key (=, IN, OR) or from the branches of a CASE. With GROUPING SETS a
key is NULL in sets that leave it out, and the number of the set is a further known key.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from itertools import product

from tidemill.config.emit_options import LATE_ROWS_TABLE
from tidemill.config.mini_batch_options import MINI_BATCH_ENABLED
from tidemill.config.optimizer_options import DISTINCT_STATE_REUSE
from tidemill.config.option import Configuration
from tidemill.connectors.filters import AllOf, AnyOf, ColumnFilter, Comparison
from tidemill.physical import nodes as p
from tidemill.plan import nodes as n
from tidemill.plan.column_filters import column_filters
from tidemill.plan.expressions import AggregateCall, Call, Cast, Expr, InputRef, Literal
from tidemill.plan.predicates import conjuncts
from tidemill.types import logical as t

MOST = 256
"""Combinations of the keys' values."""
_WHOLE: dict[type[t.LogicalType], int] = {
    t.TinyIntType: 8,
    t.SmallIntType: 16,
    t.IntType: 32,
    t.BigIntType: 64,
}
_KNOWN = (*_WHOLE, t.VarCharType, t.DateType, t.BooleanType)
Values = tuple[object, ...]


def known_keys(node: n.Aggregate, config: Configuration, state_ttl: int) -> p.DistinctReuse | None:
    """The keys of ``node`` with known values, if they may share distinct state; otherwise None."""
    if state_ttl or not config.read(MINI_BATCH_ENABLED):
        return None
    return _shared(node.input, node.keys, node.calls, config)


def known_keys_of_windows(
    input_: n.LogicalNode, keys: tuple[int, ...], calls: tuple[AggregateCall, ...], config: Configuration
) -> p.DistinctReuse | None:
    """As ``known_keys``, for an aggregation by window; ``keys`` exclude the window's. Rows of GROUPING SETS
    are told apart by the values of their keys."""
    if config.read(LATE_ROWS_TABLE):
        return None
    reuse = _shared(input_, keys, calls, config)
    if reuse is None:
        return None
    others = (key for place, key in enumerate(keys) if place not in reuse.places)
    combinations = tuple(
        replace(
            combination,
            conditions=tuple((keys[i], v) for i, v in zip(reuse.places, combination.values, strict=True)),
            grouping=0,
        )
        for combination in reuse.combinations
    )
    return replace(reuse, combinations=combinations, kept=(*others, calls[0].args[0]), expanded=False)


def _shared(
    input_: n.LogicalNode, keys: tuple[int, ...], calls: tuple[AggregateCall, ...], config: Configuration
) -> p.DistinctReuse | None:
    mode = config.read(DISTINCT_STATE_REUSE).upper()
    if mode == "OFF" or not _counts_distinct(keys, calls):
        return None
    columns = (*keys, calls[0].args[0])
    below, groupings = _groupings(input_, columns)
    listed = [[_possible(below, x) for x in grouping] for grouping in groupings]
    known_positions = [i for i in range(len(keys)) if all(key_values[i] is not None for key_values in listed)]
    counted_columns = _same_columns(groupings, [i for i in range(len(columns)) if i not in known_positions])
    if not known_positions or counted_columns is None:
        return None
    combinations = [
        combination
        for number, (grouping, key_values) in enumerate(zip(groupings, listed, strict=True))
        for combination in _combinations(
            [(grouping[i], key_values[i] or ()) for i in known_positions], number
        )
    ]
    each_once = len({c.values for c in combinations}) == len(combinations)
    if not each_once or not 1 < len(combinations) <= MOST:
        return None
    return p.DistinctReuse(
        places=tuple(known_positions),
        combinations=tuple(combinations),
        kept=counted_columns,
        expanded=isinstance(input_, n.Expand),
        forced=mode == "ON",
    )


def _counts_distinct(keys: tuple[int, ...], calls: tuple[AggregateCall, ...]) -> bool:
    """Whether all ``calls`` count the distinct values of the same column, and the column is no key."""
    columns = {call.args for call in calls}
    plain = all(c.function == "COUNT" and c.distinct and c.filter is None for c in calls)
    return plain and len(columns) == 1 and all(len(x) == 1 and x[0] not in keys for x in columns)


def _groupings(node: n.LogicalNode, columns: tuple[int, ...]) -> tuple[n.LogicalNode, list[tuple[Expr, ...]]]:
    """The node below the Expand, if there is one, and the expressions of ``columns`` per projection."""
    if isinstance(node, n.Expand):
        return node.input, [tuple(row[c] for c in columns) for row in node.projections]
    return node, [tuple(InputRef(type=node.fields[c].type, index=c) for c in columns)]


def _possible(below: n.LogicalNode, expression: Expr) -> Values | None:
    if isinstance(expression, Literal):
        return (expression.value,)
    return _values(below, expression.index) if isinstance(expression, InputRef) else None


def _same_columns(groupings: list[tuple[Expr, ...]], positions: list[int]) -> tuple[int, ...] | None:
    """The distinct columns at ``positions`` if they are the same in all ``groupings``; otherwise None."""
    distinct_rows = {tuple(grouping[i] for i in positions) for grouping in groupings}
    columns = [x.index for row in distinct_rows for x in row if isinstance(x, InputRef)]
    return tuple(columns) if len(set(columns)) == len(columns) == len(positions) else None


def _combinations(keys: list[tuple[Expr, Values]], grouping: int) -> list[p.KnownKeys]:
    """All combinations of the values of ``keys``."""
    return [
        p.KnownKeys(
            values=values,
            conditions=tuple(
                (x.index, value)
                for (x, _), value in zip(keys, values, strict=True)
                if isinstance(x, InputRef)
            ),
            grouping=grouping,
        )
        for values in product(*(key_values for _, key_values in keys))
    ]


@singledispatch
def _values(node: n.LogicalNode, column: int) -> Values | None:
    """The possible values of a column, in the order of the query; None if they are not known."""
    return None


@_values.register
def _(node: n.Watermark, column: int) -> Values | None:
    return _values(node.input, column)


@_values.register
def _(node: n.WindowTableFunction, column: int) -> Values | None:
    return _values(node.input, column) if column < len(node.input.fields) else None


@_values.register
def _(node: n.Project, column: int) -> Values | None:
    expression = node.expressions[column]
    if isinstance(expression, InputRef):
        return _values(node.input, expression.index)
    return _constants(expression, node.fields[column].type)


@_values.register
def _(node: n.Filter, column: int) -> Values | None:
    kind = node.fields[column].type
    names = [str(i) for i in range(len(node.fields))]
    for condition in column_filters(conjuncts(node.condition), names):
        values = _listed(condition, str(column))
        if values is not None:
            return _fitting(values, kind)
    return _values(node.input, column)


def _listed(condition: ColumnFilter, column: str) -> Values | None:
    match condition:
        case Comparison(name, "=", value):
            return (value,) if name == column else None
        case AnyOf(parts):
            each = [_listed(part, column) for part in parts]
            alternatives = [values for values in each if values is not None]
            return (
                tuple(v for values in alternatives for v in values)
                if len(alternatives) == len(each)
                else None
            )
        case AllOf(parts):
            return next((v for part in parts if (v := _listed(part, column)) is not None), None)
        case _:
            return None


def _constants(expression: Expr, kind: t.LogicalType) -> Values | None:
    """The results of a CASE of constants."""
    if not isinstance(expression, Call) or expression.function != "CASE":
        return None
    results = (*expression.args[1:-1:2], expression.args[-1])
    bare = [x.operand if isinstance(x, Cast) and x.implicit else x for x in results]
    if not all(isinstance(x, Literal) and x.value is not None for x in bare):
        return None
    return _fitting(tuple(x.value for x in bare if isinstance(x, Literal)), kind)


def _fitting(values: Values, kind: t.LogicalType) -> Values | None:
    """The ``values`` that type ``kind`` can hold; None if Python compares such values unlike SQL."""
    if not isinstance(kind, _KNOWN):
        return None
    bits = _WHOLE.get(type(kind))
    if bits is not None:
        values = tuple(v for v in values if isinstance(v, int) and -(1 << bits - 1) <= v < 1 << bits - 1)
    return tuple(dict.fromkeys(values))
