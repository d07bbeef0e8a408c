"""Window table functions, ``TABLE(TUMBLE(...))``: the input's rows with the columns of their windows.

Adds window_start and window_end, TIMESTAMP(3) NOT NULL, and window_time, which is a time attribute as
the time column is. Arguments are positional or named (DATA, TIMECOL, SIZE, SLIDE, STEP, GAP, OFFSET).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.operators.window.assigners import kinds
from tidemill.operators.window.assigners.kind import WindowKind
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import BoundQuery, Context
from tidemill.plan.binder.expressions.binding import Clause, ExpressionBinder, QueryBinder
from tidemill.plan.binder.naming import column_aliases, with_column_names
from tidemill.plan.binder.relations.built_in import BuiltIn
from tidemill.plan.binder.relations.tables import Source, bind_table, named_source
from tidemill.plan.binder.scope import Scope, nearest, unique_name
from tidemill.plan.expressions import Literal
from tidemill.sql.expressions import Descriptor, TableArgument
from tidemill.sql.positions import position_of
from tidemill.types import logical as t

WINDOW = Clause(name="window function")
START = t.TimestampType(precision=3, nullable=False)


def bind(binder: QueryBinder, node: exp.Expr, context: Context) -> Source:
    call = node.this
    kind = kinds()[str(call.this).upper()]
    arguments = _arguments(kind, call)
    data, time_column = arguments["DATA"], arguments["TIMECOL"]
    if not isinstance(data, TableArgument | exp.Subquery) or not isinstance(time_column, Descriptor):
        raise _mismatch(call)
    source = _data(binder, data, context)
    time = _time_index(source, time_column)
    constants = binder.expressions(context, Scope(), WINDOW)
    sizes = {name: length(constants, arguments[name]) for name in kind.parameters if name in arguments}
    _check(kind, sizes, call)
    fields = source.plan.fields
    window = n.WindowTableFunction(
        fields=(*fields, *window_fields(fields, fields[time].type)),
        input=source.plan,
        kind=kind,
        time=time,
        size=millis(sizes, kind.size),
        slide=millis(sizes, kind.slide),
        offset=millis(sizes, "OFFSET"),
        months=months(kind, call, sizes, (kind.size, kind.slide, "OFFSET")),
        partition=_partition(source, data),
        position=position_of(call),
    )
    names = (*source.names, "window_start", "window_end", "window_time")
    query = with_column_names(BoundQuery(plan=checked(window), names=names), column_aliases(node), node)
    return named_source(query, context.alias(node))


def _arguments(kind: WindowKind, call: exp.Expr) -> dict[str, exp.Expr]:
    names = ("DATA", "TIMECOL", *kind.parameters)
    arguments: dict[str, exp.Expr] = {}
    for index, node in enumerate(call.expressions):
        if isinstance(node, exp.Kwarg):
            arguments[node.this.name.upper()] = node.expression
        elif index < len(names):
            arguments[names[index]] = node
        else:
            raise _mismatch(call)
    unknown = [name for name in arguments if name not in names]
    if unknown or not set(names[: 2 + kind.required]) <= set(arguments):
        raise _mismatch(call)
    return arguments


def _mismatch(call: exp.Expr) -> ValidationError:
    name = str(call.this).upper()
    parameters = kinds()[name].parameters
    parts = [f"{p.lower()}" for p in parameters]
    signature = ", ".join(("TABLE table_name", "DESCRIPTOR(timecol)", *parts))
    return ValidationError(
        f"Supported form(s): {name}({signature})",
        position=position_of(call),
        expected=("DATA", "TIMECOL", *parameters),
    )


def _data(binder: QueryBinder, data: exp.Expr, context: Context) -> BoundQuery:
    if isinstance(data.this, exp.Table):
        source = bind_table(binder, data.this, context)
        return BoundQuery(plan=source.plan, names=tuple(source.scope.names()))
    return binder.bind(data.this, context)


def _time_index(source: BoundQuery, descriptor: exp.Expr) -> int:
    name = descriptor.expressions[0].name
    if name not in source.names:
        raise ValidationError(
            f"Unknown identifier '{name}'",
            position=position_of(descriptor),
            hint=nearest(name, source.names),
        )
    index = source.names.index(name)
    kind = source.plan.fields[index].type
    if not isinstance(kind, t.TIMESTAMP_TYPES):
        raise ValidationError(
            f"The window function requires the timecol is a time attribute type, but is {kind}.",
            position=position_of(descriptor),
        )
    return index


Length = tuple[bool, int]
"""Whether it is a number of months, and the number; else it is milliseconds."""


def length(binder: ExpressionBinder, node: exp.Expr) -> Length:
    """A constant INTERVAL."""
    bound = binder.bind(node)
    if isinstance(bound, Literal) and isinstance(bound.value, int):
        if isinstance(bound.type, t.DayTimeIntervalType):
            return False, bound.value
        if isinstance(bound.type, t.YearMonthIntervalType):
            return True, bound.value
    raise ValidationError("A window's size must be a constant INTERVAL", position=position_of(node))


def millis(sizes: Mapping[str, Length], name: str) -> int:
    """The size ``name`` in ms; 0 if it is missing or in months."""
    in_months, size = sizes.get(name, (False, 0))
    return 0 if in_months else size


def months(
    kind: WindowKind, call: exp.Expr, sizes: Mapping[str, Length], names: tuple[str, str, str]
) -> n.Months | None:
    """The size, slide and offset called ``names`` that are in months; None if none of them is."""
    counted = [count if is_months else 0 for is_months, count in (sizes.get(x, (False, 0)) for x in names)]
    if not any(counted):
        return None
    size, slide, offset = counted
    if kind.is_data_driven:
        message = f"{kind.name} by months or years: its intervals are days to seconds"
        raise ValidationError(message, position=position_of(call))
    if (
        not size
        or (not slide and kind.slide and kind.cut_months is None)
        or (offset and names[1] in sizes and not slide)
    ):
        message = f"{kind.name} whose size and slide are not both months or both a time of days to seconds"
        hint = "CUMULATE takes steps of days to seconds in a size of months, with an offset of such a time."
        raise NotSupportedError(f"{message} is not supported", position=position_of(call), hint=hint)
    return n.Months(size=size, slide=slide, offset=offset)


_LEAST_MONTH = 28 * 86_400_000


def _check(kind: WindowKind, sizes: Mapping[str, Length], call: exp.Expr) -> None:
    for name in (kind.size, kind.slide):
        if sizes.get(name, (False, 1))[1] <= 0:
            message = f"{kind.name} requires a positive {name.lower()}"
            raise ValidationError(message, position=position_of(call))
    (_, offset), (_, size) = (sizes.get(name, (False, 0)) for name in ("OFFSET", kind.size))
    if not offset:
        return
    spans = [count * _LEAST_MONTH if is_months else count for is_months, count in sizes.values()]
    span, shift = (spans[list(sizes).index(name)] for name in (kind.size, "OFFSET"))
    if abs(shift) >= span:
        unit = "months" if sizes[kind.size][0] else "ms"
        offset_unit = "months" if sizes["OFFSET"][0] else "ms"
        raise ValidationError(
            f"{kind.name} table function parameters must satisfy abs(offset) < size, but got size"
            f" {size}{unit} and offset {offset}{offset_unit}.",
            position=position_of(call),
        )


def checked(window: n.WindowTableFunction) -> n.WindowTableFunction:
    """``window``; ValidationError if its assigner refuses the lengths."""
    if not window.kind.is_data_driven:
        try:
            window.kind.assigner(window)
        except ValidationError as e:
            unit = "milliseconds" if window.months is None else "months"
            hint = e.hint or f"The lengths are in {unit}."
            raise ValidationError(e.message, position=window.position, hint=hint) from None
    return window


def window_fields(fields: tuple[t.Field, ...], time: t.LogicalType) -> tuple[t.Field, ...]:
    used = {f.name for f in fields}
    added = []
    for name, kind in (("window_start", START), ("window_end", START), ("window_time", _window_time(time))):
        unique = unique_name(name, used)
        used.add(unique)
        added.append(t.Field(unique, kind))
    return tuple(added)


def _window_time(time: t.LogicalType) -> t.LogicalType:
    assert isinstance(time, t.TimestampType | t.LocalZonedTimestampType)
    return replace(time, precision=3, nullable=False)


def _partition(source: BoundQuery, data: exp.Expr) -> tuple[int, ...]:
    keys = []
    for node in data.args.get("partition_by") or ():
        if node.name not in source.names:
            raise ValidationError(
                f"Column '{node.name}' not found in any table",
                position=position_of(node),
                hint=nearest(node.name, source.names),
            )
        keys.append(source.names.index(node.name))
    return tuple(keys)


BUILT_IN = BuiltIn(names=kinds, bind=bind)
