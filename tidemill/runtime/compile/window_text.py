"""The windows of a row as Spark SQL, for rows that carry their windows.

Windows are cut in local wall time, but sessions by instants, and all are given in wall time; ``window_time``
is the last millisecond, an instant where the time column is TIMESTAMP_LTZ."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.functions.casts_datetime import EPOCH, millis_between
from tidemill.physical import nodes as p
from tidemill.plan.nodes import WindowKind
from tidemill.types.physical import quote


def local_time(time: str) -> str:
    """A TIMESTAMP_LTZ as the time that the session's clock showed."""
    return f"CAST({time} AS TIMESTAMP_NTZ)"


def window_rows(window: p.Window, time: str, names: tuple[str, ...]) -> str:
    """A generator: one row for every window that ``time`` (an expression) lies in, with columns ``names``."""
    windows = _WINDOWS[window.kind](window, milliseconds(window, time))
    bounds = f"transform({windows}, w -> struct({', '.join(window_columns(window, 'w.s', 'w.e', names))}))"
    aliases = ", ".join(map(quote, names))
    return f"inline({bounds}) AS ({aliases})"


def growing_rows(window: p.Window, time: str, bounds: tuple[str, str], names: tuple[str, ...]) -> str:
    """A generator: one row for every step in which a window that grows shows the row at ``time``. ``bounds``:
    the time of its first row, and its end, which lies in the last step where there is no gap."""
    first, end = bounds
    step = window.slide
    low = f"{_floor(time, step, 0)} + {step}L"
    high = _floor(f"({end} - 1L)", step, 0)
    if not window.size:
        high = f"({high} + {step}L)"
    steps = f"if({low} <= {high}, sequence({low}, {high}, {step}L), array())"
    if window.size:
        steps = f"concat({steps}, array({end}))"
    columns = ", ".join(window_columns(window, _floor(first, step, 0), "e", names))
    aliases = ", ".join(map(quote, names))
    return f"inline(transform({steps}, e -> struct({columns}))) AS ({aliases})"


def _of_instants(window: p.Window) -> bool:
    """A gap is a time that has passed, whatever the clock shows."""
    return window.zoned and window.kind is WindowKind.SESSION


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


def _floor(time: str, width: int, offset: int) -> str:
    return f"({time} - pmod({time} - {offset}L, {width}L))"


@dataclass(frozen=True, slots=True)
class _Units:
    """How time is counted: in milliseconds, or in months since 1970 (a window's ``offset`` later)."""

    in_months: bool
    offset: int = 0

    def of(self, time: str) -> str:
        """The unit that a time in milliseconds is in."""
        if not self.in_months:
            return time
        date = f"date_from_unix_date(CAST(floor(({time} - {self.offset}L) / 86400000D) AS INT))"
        return f"CAST((year({date}) - 1970) * 12 + month({date}) - 1 AS BIGINT)"

    def time(self, unit: str) -> str:
        """The first millisecond of a unit."""
        if not self.in_months:
            return unit
        date = f"add_months(DATE'1970-01-01', CAST({unit} AS INT))"
        return f"(unix_date({date}) * 86400000L + {self.offset}L)"


def _counted(window: p.Window) -> tuple[_Units, int, int, int]:
    """The units of a window, and its size, slide and offset in them."""
    months = window.months
    if months is None:
        return _Units(False), window.size, window.slide, window.offset
    return _Units(True, window.offset), months.size, months.slide, months.offset


def _tumble(window: p.Window, time: str) -> str:
    units, size, _, offset = _counted(window)
    start = _floor(units.of(time), size, offset)
    return (
        f"transform(array({start}), s -> struct({units.time('s')} AS s, {units.time(f's + {size}L')} AS e))"
    )


def _hop(window: p.Window, time: str) -> str:
    units, size, slide, offset = _counted(window)
    unit = units.of(time)
    last = _floor(unit, slide, offset)
    starts = f"transform(sequence(0L, {-(-size // slide) - 1}L), i -> {last} - i * {slide}L)"
    held = f"filter({starts}, s -> s > {unit} - {size}L)"
    return f"transform({held}, s -> struct({units.time('s')} AS s, {units.time(f's + {size}L')} AS e))"


def _cumulate(window: p.Window, time: str) -> str:
    units, size, slide, offset = _counted(window)
    unit = units.of(time)
    start = _floor(unit, size, offset)
    if not slide:
        return _steps_of_months(units, start, size, window.slide, time)
    ends = f"transform(sequence(1L, {-(-size // slide)}L), i -> {start} + least(i * {slide}L, {size}L))"
    bounds = f"struct({units.time(start)} AS s, {units.time('e')} AS e)"
    return f"transform(filter({ends}, e -> e > {unit}), e -> {bounds})"


def _steps_of_months(units: _Units, start: str, size: int, step: int, time: str) -> str:
    """Steps of milliseconds up to a size of months: as many as the months have."""
    first, last = units.time(start), units.time(f"{start} + {size}L")
    steps = f"CAST(ceil(({last} - {first}) / {step}D) AS BIGINT)"
    ends = f"transform(sequence(1L, {steps}), i -> {first} + least(i * {step}L, {last} - {first}))"
    return f"transform(filter({ends}, e -> e > {time}), e -> struct({first} AS s, e AS e))"


_WINDOWS = {WindowKind.TUMBLE: _tumble, WindowKind.HOP: _hop, WindowKind.CUMULATE: _cumulate}
