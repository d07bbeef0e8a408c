"""The session's time zone by name: the time zone database's names, UTC, or a fixed GMT offset."""

from __future__ import annotations

import datetime as dt
import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tidemill.errors import ValidationError

_OFFSET = re.compile(r"(?:GMT|UTC)?([+-])(\d{1,2}):?([0-5]\d)?", re.ASCII)
_FARTHEST = dt.timedelta(hours=18)
"""As java.time has it."""


def zone_of(name: str) -> dt.tzinfo:
    """Raises ValidationError, in Flink's words, where ``name`` names no zone."""
    match = _OFFSET.fullmatch(name)
    if match:
        offset = dt.timedelta(hours=int(match.group(2)), minutes=int(match.group(3) or 0))
        if offset <= _FARTHEST:
            return dt.timezone(-offset if match.group(1) == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValidationError(
            f"Invalid time zone '{name}'. The value should be a Time Zone Database (TZDB) ID such as "
            "'America/Los_Angeles' to include daylight saving time. Fixed offsets are supported using "
            "'GMT-03:00' or 'GMT+03:00'. Or use 'UTC' without time zone and daylight saving time.",
            hint="The option is 'table.local-time-zone'.",
        ) from None
