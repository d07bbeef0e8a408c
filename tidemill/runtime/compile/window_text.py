"""The windows of a row as Spark SQL, for rows that carry their windows.

Windows are cut in local wall time, but sessions by instants, and all are given in wall time; ``window_time``
is the last millisecond, an instant where the time column is TIMESTAMP_LTZ."""

from __future__ import annotations

from tidemill.functions.casts_datetime import EPOCH, millis_between
from tidemill.operators.window.assigners.assigner import floor_text
from tidemill.operators.window.assigners.session import KIND as SESSION
from tidemill.physical import nodes as p
from tidemill.types.physical import quote


def local_time(time: str) -> str:
    """A TIMESTAMP_LTZ as the time that the session's clock showed."""
    return f"CAST({time} AS TIMESTAMP_NTZ)"


def window_rows(window: p.Window, time: str, names: tuple[str, ...]) -> str:
    """A generator: one row for every window that ``time`` (an expression) lies in, with columns ``names``."""
    return shown_windows(window, window.kind.assigner(window).text(milliseconds(window, time)), names)


def shown_windows(window: p.Window, windows: str, names: tuple[str, ...]) -> str:
    """A generator: one row for every window of an array as an assigner's text gives it."""
    bounds = f"transform({windows}, w -> struct({', '.join(window_columns(window, 'w.s', 'w.e', names))}))"
    aliases = ", ".join(map(quote, names))
    return f"inline({bounds}) AS ({aliases})"


def growing_rows(window: p.Window, time: str, bounds: tuple[str, str], names: tuple[str, ...]) -> str:
    """A generator: one row for every step in which a window that grows shows the row at ``time``. ``bounds``:
    the time of its first row, and its end, which lies in the last step where there is no gap."""
    first, end = bounds
    step = window.slide
    low = f"{floor_text(time, step, 0)} + {step}L"
    high = floor_text(f"({end} - 1L)", step, 0)
    if not window.size:
        high = f"({high} + {step}L)"
    steps = f"if({low} <= {high}, sequence({low}, {high}, {step}L), array())"
    if window.size:
        steps = f"concat({steps}, array({end}))"
    columns = ", ".join(window_columns(window, floor_text(first, step, 0), "e", names))
    aliases = ", ".join(map(quote, names))
    return f"inline(transform({steps}, e -> struct({columns}))) AS ({aliases})"


def _of_instants(window: p.Window) -> bool:
    """A gap is a time that has passed, whatever the clock shows."""
    return window.zoned and window.kind == SESSION


def milliseconds(window: p.Window, time: str) -> str:
    """``time`` by the clock that windows are cut by, in whole milliseconds since 1970, rounded down."""
    if _of_instants(window):
        return f"unix_millis({time})"
    local = local_time(time) if window.zoned else time
    return millis_between(EPOCH, local)


def window_columns(window: p.Window, start: str, end: str, names: tuple[str, ...]) -> list[str]:
    """window_start, window_end and window_time of a window [``start``, ``end``), both in milliseconds."""
    if _of_instants(window):
        instants = [f"timestamp_millis({t})" for t in (start, end, f"{end} - 1")]
        shown = (*map(local_time, instants[:2]), instants[2])
        return [f"{value} AS {quote(name)}" for value, name in zip(shown, names, strict=True)]
    last = _timestamp(f"{end} - 1")
    if window.zoned:
        last = f"CAST({last} AS TIMESTAMP)"
    values = (_timestamp(start), _timestamp(end), last)
    return [f"{value} AS {quote(name)}" for value, name in zip(values, names, strict=True)]


def _timestamp(milliseconds: str) -> str:
    return f"timestampadd(MICROSECOND, ({milliseconds}) * 1000, {EPOCH})"
