"""The windows of a row as Spark SQL, for rows that carry their windows.

Windows are cut in local wall time and given as such; ``window_time`` is the last millisecond, an instant
where the time column is TIMESTAMP_LTZ."""

from __future__ import annotations

from tidemill.physical import nodes as p
from tidemill.plan.nodes import WindowKind
from tidemill.types.physical import quote

_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


def local_time(time: str) -> str:
    """A TIMESTAMP_LTZ as the time that the session's clock showed."""
    return f"CAST({time} AS TIMESTAMP_NTZ)"


def window_rows(window: p.Window, time: str, names: tuple[str, ...]) -> str:
    """A generator: one row for every window that ``time`` (an expression) lies in, with columns ``names``."""
    windows = _WINDOWS[window.kind](window, milliseconds(window, time))
    bounds = f"transform({windows}, w -> struct({', '.join(window_columns(window, 'w.s', 'w.e', names))}))"
    aliases = ", ".join(map(quote, names))
    return f"inline({bounds}) AS ({aliases})"


def milliseconds(window: p.Window, time: str) -> str:
    """``time`` by the clock that windows are cut by, in whole milliseconds since 1970, rounded down."""
    local = local_time(time) if window.zoned else time
    return f"CAST(floor(timestampdiff(MICROSECOND, {_EPOCH}, {local}) / 1000D) AS BIGINT)"


def window_columns(window: p.Window, start: str, end: str, names: tuple[str, ...]) -> list[str]:
    """window_start, window_end and window_time of a window [``start``, ``end``), both in milliseconds."""
    last = _timestamp(f"{end} - 1")
    if window.zoned:
        last = f"CAST({last} AS TIMESTAMP)"
    values = (_timestamp(start), _timestamp(end), last)
    return [f"{value} AS {quote(name)}" for value, name in zip(values, names, strict=True)]


def _timestamp(milliseconds: str) -> str:
    return f"timestampadd(MICROSECOND, ({milliseconds}) * 1000, {_EPOCH})"


def _floor(time: str, width: int, offset: int) -> str:
    return f"({time} - pmod({time} - {offset}L, {width}L))"


def _tumble(window: p.Window, time: str) -> str:
    start = _floor(time, window.size, window.offset)
    return f"transform(array({start}), s -> struct(s AS s, s + {window.size}L AS e))"


def _hop(window: p.Window, time: str) -> str:
    last = _floor(time, window.slide, window.offset)
    most = -(-window.size // window.slide)
    starts = f"transform(sequence(0L, {most - 1}L), i -> {last} - i * {window.slide}L)"
    held = f"filter({starts}, s -> s > {time} - {window.size}L)"
    return f"transform({held}, s -> struct(s AS s, s + {window.size}L AS e))"


def _cumulate(window: p.Window, time: str) -> str:
    start = _floor(time, window.size, window.offset)
    most = -(-window.size // window.slide)
    ends = f"transform(sequence(1L, {most}L), i -> {start} + least(i * {window.slide}L, {window.size}L))"
    return f"transform(filter({ends}, e -> e > {time}), e -> struct({start} AS s, e AS e))"


_WINDOWS = {WindowKind.TUMBLE: _tumble, WindowKind.HOP: _hop, WindowKind.CUMULATE: _cumulate}
