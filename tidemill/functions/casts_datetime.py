"""CAST among DATE, TIME, TIMESTAMP, TIMESTAMP_LTZ and from text; intervals from integers.

Precision is cut downwards (towards the past, also before 1970). TIMESTAMP and TIMESTAMP_LTZ meet in
the session's time zone. Carriers hold microseconds: of precisions 7 to 9 the last digits are zeros.
Text: dates ``y-M-d`` with anything after a blank ignored, timestamps ``y-M-d[ H:m:s[.f]]`` without
blanks around, a day 29..31 past the month's end is its last day.
"""

from __future__ import annotations

from tidemill.functions.cast_step import CastStep, attempt
from tidemill.functions.sharing import share
from tidemill.types import logical as t

_DATE_TEXT = "'^ *[0-9]{1,4}(-[0-9]{1,2}(-[0-9]{1,2}( .*)?)?)? *$'"
_TIMESTAMP_TEXT = "'^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}( [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}([.][0-9]{0,9})?)?$'"
_TIME_TEXT = "'^ *([01]?[0-9]|2[0-3])(:([0-5]?[0-9])(:([0-5]?[0-9])([.]([0-9]+))?)?)? *$'"
EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_CARRIER_DIGITS = 6
MILLIS_PER_DAY = 86_400_000


def cut_fraction(sql: str, digits: int) -> str:
    """A timestamp (either kind) with its fraction of a second cut to ``digits`` digits."""
    if digits >= _CARRIER_DIGITS:
        return sql
    unit = 10 ** (_CARRIER_DIGITS - digits)
    return share(
        sql,
        lambda s: (
            f"timestampadd(MICROSECOND, -(CAST(extract(SECOND FROM {s}) * 1000000 AS INT) % {unit}), {s})"
        ),
    )


def cut_millis(sql: str, digits: int) -> str:
    """Milliseconds of the day cut to TIME(digits)."""
    if digits >= 3:
        return sql
    unit = 10 ** (3 - digits)
    return f"CAST({sql} div {unit} * {unit} AS INT)"


def _precision(kind: t.LogicalType) -> int:
    assert isinstance(kind, t.TimeType | t.TimestampType | t.LocalZonedTimestampType)
    return kind.precision


def _carrier(kind: t.LogicalType) -> str:
    return "TIMESTAMP_NTZ" if isinstance(kind, t.TimestampType) else "TIMESTAMP"


def same(step: CastStep) -> str:
    return step.sql


def time_to_time(step: CastStep) -> str:
    if _precision(step.source) <= _precision(step.target):
        return step.sql
    return cut_millis(step.sql, _precision(step.target))


def timestamp_to_timestamp(step: CastStep) -> str:
    sql = step.sql
    if _precision(step.source) > _precision(step.target):
        sql = cut_fraction(sql, _precision(step.target))
    if type(step.source) is type(step.target):
        return sql
    return f"CAST({sql} AS {_carrier(step.target)})"


def date_to_timestamp(step: CastStep) -> str:
    return f"CAST({step.sql} AS {_carrier(step.target)})"


def timestamp_to_date(step: CastStep) -> str:
    return f"CAST({step.sql} AS DATE)"


def timestamp_to_time(step: CastStep) -> str:
    local = step.sql if isinstance(step.source, t.TimestampType) else f"CAST({step.sql} AS TIMESTAMP_NTZ)"
    return share(local, lambda s: cut_millis(millis_of_day(s), _precision(step.target)))


def millis_of_day(local: str) -> str:
    """INT milliseconds since midnight of a TIMESTAMP_NTZ text."""
    minutes = f"(hour({local}) * 60 + minute({local}))"
    return f"({minutes} * 60000 + CAST(extract(SECOND FROM {local}) * 1000 AS INT))"


def seconds_between(start: str, end: str) -> str:
    """DECIMAL(20, 6) seconds between two TIMESTAMP_NTZ texts.

    Spark's timestampdiff would take both through the session's zone and shift skipped hours.
    """
    return f"CAST(CAST({end} - {start} AS INTERVAL SECOND) AS DECIMAL(20, 6))"


def micros_between(start: str, end: str) -> str:
    """BIGINT microseconds between two TIMESTAMP_NTZ texts."""
    return f"CAST({seconds_between(start, end)} * 1000000 AS BIGINT)"


def millis_between(start: str, end: str) -> str:
    """BIGINT milliseconds between two TIMESTAMP_NTZ texts, rounded down."""
    return f"CAST(floor({seconds_between(start, end)} * 1000) AS BIGINT)"


def utc_local(instant: str) -> str:
    """The TIMESTAMP_NTZ that clocks in UTC show at a TIMESTAMP."""
    return f"timestampadd(MICROSECOND, unix_micros({instant}), {EPOCH})"


def utc_instant(local: str) -> str:
    """The TIMESTAMP at which clocks in UTC show a TIMESTAMP_NTZ."""
    return f"timestamp_micros({micros_between(EPOCH, local)})"


def time_to_timestamp(step: CastStep) -> str:
    sql = cut_fraction(f"timestampadd(MILLISECOND, {step.sql}, {EPOCH})", _precision(step.target))
    return sql if isinstance(step.target, t.TimestampType) else f"CAST({sql} AS TIMESTAMP)"


def text_to_date(step: CastStep) -> str:
    def body(sql: str) -> str:
        value = f"IF({sql} RLIKE {_DATE_TEXT}, CAST({_four_digit_year(f'trim({sql})')} AS DATE), NULL)"
        return attempt(step, value, sql, f"concat('For input string: \\'', {sql}, '\\'.')")

    return share(step.sql, body)


def _four_digit_year(text: str) -> str:
    """Spark wants four digits; the text is known to start with one to four."""
    year = f"regexp_extract({text}, '^[0-9]+', 0)"
    return f"concat(repeat('0', 4 - length({year})), {text})"


def text_to_time(step: CastStep) -> str:
    def body(sql: str) -> str:
        def part(group: int) -> str:
            return f"coalesce(CAST(regexp_extract({sql}, {_TIME_TEXT}, {group}) AS INT), 0)"

        millis = f"CAST(rpad(substring(regexp_extract({sql}, {_TIME_TEXT}, 7), 1, 3), 3, '0') AS INT)"
        total = f"{part(1)} * 3600000 + {part(3)} * 60000 + {part(5)} * 1000 + {millis}"
        value = f"IF({sql} RLIKE {_TIME_TEXT}, {cut_millis(f'({total})', _precision(step.target))}, NULL)"
        form = "Expected format: HH:mm:ss[.fff] where HH is 00-23, mm is 00-59, ss is 00-59"
        return attempt(step, value, sql, f"concat('Invalid time format: \\'', {sql}, '\\'. {form}')")

    return share(step.sql, body)


def text_to_timestamp(step: CastStep) -> str:
    def body(sql: str) -> str:
        exact = f"CAST({sql} AS TIMESTAMP_NTZ)"
        value = (
            f"IF({sql} RLIKE {_TIMESTAMP_TEXT}, coalesce({exact}, {_month_end(sql)}, {_next_day(sql)}), NULL)"
        )
        return attempt(step, value, sql, f"concat('Text \\'', {sql}, '\\' could not be parsed')")

    local = cut_fraction(share(step.sql, body), _precision(step.target))
    return local if isinstance(step.target, t.TimestampType) else f"CAST({local} AS TIMESTAMP)"


def _month_end(sql: str) -> str:
    """'2024-02-30 …' is the last day of the month, as Java's SMART resolver has it."""
    day = f"substring_index({sql}, ' ', 1)"
    last = f"last_day(CAST(concat(substring_index({day}, '-', 2), '-1') AS DATE))"
    clamped = f"CAST(concat({last}, substring({sql}, length({day}) + 1)) AS TIMESTAMP_NTZ)"
    return f"IF({day} RLIKE '-(29|30|31)$', {clamped}, NULL)"


def _next_day(sql: str) -> str:
    """'… 24:00:00' is midnight of the next day."""
    midnight = f"CAST(substring_index({sql}, ' ', 1) AS TIMESTAMP_NTZ)"
    return f"IF({sql} RLIKE ' 24:0?0:0?0([.]0*)?$', timestampadd(DAY, 1, {midnight}), NULL)"


_MONTHS = {"YEAR": 12, "MONTH": 1}
_MILLIS = {"DAY": MILLIS_PER_DAY, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1_000}


def integer_to_interval(step: CastStep) -> str:
    """A count of the interval's last unit."""
    assert isinstance(step.target, t.YearMonthIntervalType | t.DayTimeIntervalType)
    unit = step.target.resolution.split(" TO ")[-1].split("(")[0]
    if isinstance(step.target, t.YearMonthIntervalType):
        return f"CAST({step.sql} * {_MONTHS[unit]} AS INT)"
    return f"(CAST({step.sql} AS BIGINT) * {_MILLIS[unit]})"
