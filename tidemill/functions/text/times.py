"""Digits of times, intervals and their fractions."""

from __future__ import annotations

import datetime as dt

from tidemill.errors import ExecutionError

_DAY = 86_400_000


def clock(millis: int, digits: int) -> str:
    """The time of day, with ``digits`` (0 to 3) of the fraction: 3723004 with 3 is ``01:02:03.004``."""
    seconds, fraction = divmod(millis, 1000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:03d}"
    return text[: 9 + digits] if digits else text[:8]


def timestamp(value: dt.datetime, digits: int, between: str = " ") -> str:
    """Date and time without the zone, with ``digits`` of the fraction: ``2020-01-01 00:00:00.123``."""
    text = value.isoformat(between, "microseconds")
    return text[: min(20 + digits, 26)].ljust(20 + digits, "0") if digits else text[:19]


def local(value: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    """An instant in ``zone``; one without a zone is in UTC. ExecutionError for years that Python lacks."""
    instant = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    try:
        return instant.astimezone(zone)
    except OverflowError:
        raise ExecutionError(
            f"{instant} is outside of the years 1 to 9999 in the session's time zone",
            hint="CAST it to STRING in the query.",
        ) from None


def shortest(text: str) -> str:
    """``text`` without trailing zeros of the fraction: ``12:00:00.500`` is ``12:00:00.5``."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def months(value: int) -> str:
    """An interval of months: -14 is ``-1-02``."""
    years, rest = divmod(abs(value), 12)
    return f"{'-' if value < 0 else '+'}{years}-{rest:02d}"


def days(value: int) -> str:
    """An interval of milliseconds: 90061001 is ``+1 01:01:01.001``."""
    whole, rest = divmod(abs(value), _DAY)
    return f"{'-' if value < 0 else '+'}{whole} {clock(rest, 3)}"
