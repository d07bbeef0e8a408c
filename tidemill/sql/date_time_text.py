"""The text of a DATE, TIME or TIMESTAMP literal, as Flink's parser reads it.

Numbers have any count of digits and may follow blanks; nothing may stand behind the text. A TIMESTAMP
without a time of day is midnight.
"""

from __future__ import annotations

import re
from datetime import datetime

_DAY = r"[ \t]*(\d+)-[ \t]*(\d+)-[ \t]*(\d+)"
_CLOCK = r"[ \t]*(\d+):[ \t]*(\d+):[ \t]*(\d+)"
_FRACTION = r"(?:\.(\d*))?"
_FORMS = {
    "DATE": re.compile(_DAY),
    "TIME": re.compile(rf"()()(){_CLOCK}{_FRACTION}"),
    "TIMESTAMP": re.compile(rf"{_DAY}(?: {_CLOCK})?{_FRACTION}"),
}
SHOWN = {"DATE": "yyyy-MM-dd", "TIME": "HH:mm:ss", "TIMESTAMP": "yyyy-MM-dd HH:mm:ss"}
_MICROS = 6


def read_date_time(form: str, text: str) -> tuple[datetime, int] | None:
    """The moment, in microseconds, and the number of fraction digits written; None for any other text.

    A DATE is at midnight, a TIME on the first day of year 1.
    """
    match = _FORMS[form].fullmatch(text)
    if match is None:
        return None
    *fields, fraction = (*match.groups(), None) if form == "DATE" else match.groups()
    digits = fraction or ""
    try:
        year, month, day = (int(field or 1) for field in fields[:3])
        hour, minute, second = (int(field or 0) for field in (*fields[3:], 0, 0, 0)[:3])
        micros = int(digits[:_MICROS].ljust(_MICROS, "0"))
        return datetime(year, month, day, hour, minute, second, micros), len(digits)
    except (ValueError, OverflowError):
        return None
