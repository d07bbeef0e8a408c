"""``JOIN t FOR SYSTEM_TIME AS OF o.ts``: the version of t as of a time of the left side's row."""

from __future__ import annotations

from sqlglot import exp

from tidemill.errors import NotSupportedError, Position, ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.binder import hints
from tidemill.plan.binder.context import Context, is_streaming
from tidemill.plan.binder.expressions.binding import Clause, QueryBinder
from tidemill.plan.binder.relations import joins, tables
from tidemill.plan.binder.relations.tables import Source
from tidemill.plan.event_time import event_times, version_times
from tidemill.plan.expressions import Expr, InputRef
from tidemill.plan.rules.determinism import has_subquery, has_user_call
from tidemill.sql.positions import position_of
from tidemill.types import logical as t

_AS_OF = Clause(name="FOR SYSTEM_TIME AS OF")
_ONLY = (
    "Temporal table join currently only supports 'FOR SYSTEM_TIME AS OF' left table's time attribute field"
)


def join_version(binder: QueryBinder, left: Source, join: exp.Expr, context: Context) -> Source | None:
    """The temporal join; None if the right side has no FOR SYSTEM_TIME AS OF."""
    node = join.this
    version = node.args.get("version")
    if version is None:
        return None
    kind, position = joins.kind_of(join), position_of(node)
    if kind not in (n.JoinKind.INNER, n.JoinKind.LEFT):
        raise NotSupportedError(
            f"A temporal join must be INNER or LEFT, not {kind.value}", position=position_of(join)
        )
    time = _time(binder, left, version, context)
    right = tables.bind_named(binder, node, context)
    joined = joins.bind(binder, left, right, join, context)
    plan = joined.plan
    assert isinstance(plan, n.Join)
    _check_condition(plan.condition, position)
    by_event = time.type.time_attribute != "PROCTIME"
    return Source(
        plan=n.TemporalJoin(
            fields=plan.fields,
            left=plan.left,
            right=plan.right,
            kind=kind,
            condition=plan.condition,
            time=time.index,
            version=_version(time, plan.right, position) if by_event else None,
            retry=None if by_event else hints.retry_of(join, node.alias_or_name),
            position=position,
        ),
        scope=joined.scope,
    )


def _time(binder: QueryBinder, left: Source, version: exp.Expr, context: Context) -> InputRef:
    """The time attribute of the left side in FOR SYSTEM_TIME AS OF."""
    bound = binder.expressions(context, left.scope, _AS_OF).bind(version.expression)
    position = position_of(version)
    if not isinstance(bound, InputRef):
        raise ValidationError(_ONLY, position=position)
    timed = bound.type.time_attribute or (
        "ROWTIME" if not is_streaming(context) and bound.index in event_times(left.plan) else ""
    )
    if not timed:
        name = left.plan.fields[bound.index].name
        raise ValidationError(
            f"{_ONLY}, but '{name}' is {bound.type}",
            position=position,
            hint=f"Declare WATERMARK FOR {name} AS ... in the table, and pass the column on unchanged.",
        )
    return bound


def _check_condition(condition: Expr, position: Position | None) -> None:
    if has_subquery(condition):
        raise NotSupportedError("A subquery in the condition of a temporal join", position=position)
    if has_user_call(condition):
        raise NotSupportedError(
            "A user-defined function in the condition of a temporal join is not supported", position=position
        )


def _version(time: InputRef, right: n.LogicalNode, position: Position | None) -> int:
    """The index of the right side's only event-time field."""
    row_times = sorted(version_times(right))
    if not row_times:
        raise ValidationError(
            "Event-Time Temporal Table Join requires both primary key and row time attribute in versioned "
            "table, but no row time attribute can be found.",
            position=position,
            hint="Declare WATERMARK FOR ... in the versioned table.",
        )
    if len(row_times) > 1:
        names = ", ".join(right.fields[i].name for i in row_times)
        raise ValidationError(
            f"A versioned table must have one row time attribute, but this table has several: {names}",
            position=position,
        )
    kind = right.fields[row_times[0]].type
    if type(kind) is not type(time.type):
        raise ValidationError(
            "Event-Time Temporal Table Join requires same rowtime type in left table and versioned table, but"
            f" the rowtime types are {_plain(time.type)} and {_plain(kind)}.",
            position=position,
        )
    return row_times[0]


def _plain(kind: t.LogicalType) -> str:
    return kind.with_nullable(True).text()
