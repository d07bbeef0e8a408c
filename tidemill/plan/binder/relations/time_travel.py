"""``FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '...'``: an old version, if the connector keeps versions.

The time is an option of the table: ``FROM t /*+ OPTIONS('as-of-millis' = '1690761600000') */``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from sqlglot import exp

from tidemill.catalog.table import CatalogTable
from tidemill.connectors.registry import connector
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.plan.binder.context import Context
from tidemill.plan.binder.expressions.binding import Clause, QueryBinder
from tidemill.plan.binder.scope import Scope
from tidemill.plan.expressions import Call, Cast, Expr, Literal
from tidemill.sql.date_time_text import read_date_time
from tidemill.sql.positions import position_of
from tidemill.types import logical as t

_AS_OF = Clause(name="FOR SYSTEM_TIME AS OF")


def time_option(
    binder: QueryBinder, version: exp.Expr, table: CatalogTable, options: dict[str, str], context: Context
) -> tuple[str, str]:
    """The option of ``table`` for the time, and its value. ``options``: the table's, with hints applied."""
    position = position_of(version)
    key = connector(options).time_option
    if not key:
        raise NotSupportedError(
            f"FOR SYSTEM_TIME AS OF a time: tables of connector '{options['connector']}' keep no versions",
            position=position,
            hint="As the right side of a join: JOIN t FOR SYSTEM_TIME AS OF o.ts ON o.k = t.k",
        )
    bound = binder.expressions(context, Scope(relations=()), _AS_OF).bind(version.expression)
    as_of = _constant(bound)
    if not isinstance(as_of, datetime):
        raise ValidationError(
            "Unsupported time travel expression: the expression can not be reduced to a constant time.",
            position=position,
            hint="Write: FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-31 12:00:00'",
        )
    zone = ZoneInfo(context.environment.time_zone)
    instant = as_of if as_of.tzinfo else as_of.replace(tzinfo=zone)
    return key, str((instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1))


def _constant(bound: Expr) -> object:
    """The value of a time, of a text cast to a time, or of time plus interval; None for other expressions."""
    match bound:
        case Literal(value=value):
            return value
        case Cast(operand=operand, type=t.TimestampType()):
            value = _constant(operand)
            read = read_date_time("TIMESTAMP", value) if isinstance(value, str) else None
            return read[0] if read else value
        case Call(function="+" | "-" as sign, args=(left, right)) if isinstance(
            right.type, t.DayTimeIntervalType
        ):
            time, span = _constant(left), _constant(right)
            if not isinstance(time, datetime) or not isinstance(span, int):
                return None
            return time + timedelta(milliseconds=span if sign == "+" else -span)
    return None
