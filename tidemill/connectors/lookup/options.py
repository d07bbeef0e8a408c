"""Options of lookup tables, with Flink's keys, and their parsed form."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.config.option import Duration
from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import ValidationError

CACHE, RETRIES = "lookup.cache", "lookup.max-retries"
_PARTIAL, _FULL = "lookup.partial-cache.", "lookup.full-cache."
_MAX_ROWS, _AFTER_WRITE = _PARTIAL + "max-rows", _PARTIAL + "expire-after-write"
_AFTER_ACCESS, _MISSES = _PARTIAL + "expire-after-access", _PARTIAL + "cache-missing-key"
_STRATEGY, _INTERVAL = _FULL + "reload-strategy", _FULL + "periodic-reload.interval"
_MODE, _TIME = _FULL + "periodic-reload.schedule-mode", _FULL + "timed-reload.iso-time"
_DAYS = _FULL + "timed-reload.interval-in-days"

LOOKUP_OPTIONS = (
    ConnectorOption(
        key=CACHE,
        default="NONE",
        choices=("NONE", "PARTIAL", "FULL"),
        doc="What workers cache of a lookup table: nothing, recent lookups, or the whole table.",
    ),
    ConnectorOption(
        key=RETRIES, kind="int", default="3", least=0, doc="How often a failed lookup is retried."
    ),
    ConnectorOption(key=_MAX_ROWS, kind="int", least=1, doc="PARTIAL: how many rows a worker caches."),
    ConnectorOption(key=_AFTER_WRITE, kind="duration", doc="PARTIAL: how long a cached lookup is valid."),
    ConnectorOption(
        key=_AFTER_ACCESS, kind="duration", doc="PARTIAL: how long an unused lookup stays cached."
    ),
    ConnectorOption(
        key=_MISSES, kind="bool", default="true", doc="PARTIAL: whether keys without rows are cached."
    ),
    ConnectorOption(
        key=_STRATEGY,
        default="PERIODIC",
        choices=("PERIODIC", "TIMED"),
        doc="FULL: reload the table after an interval, or at a time of day.",
    ),
    ConnectorOption(key=_INTERVAL, kind="duration", doc="FULL, PERIODIC: the interval."),
    ConnectorOption(
        key=_MODE,
        default="FIXED_DELAY",
        choices=("FIXED_DELAY", "FIXED_RATE"),
        doc="FULL, PERIODIC: the interval begins at the end of a load, or at its start.",
    ),
    ConnectorOption(key=_TIME, doc="FULL, TIMED: the time of the day, such as 10:15, 10:15Z or 10:15+07:00."),
    ConnectorOption(
        key=_DAYS, kind="int", default="1", least=1, doc="FULL, TIMED: days from one load to the next."
    ),
)

_OLD_ROWS, _OLD_TTL = "lookup.cache.max-rows", "lookup.cache.ttl"
_OLD_MISSES = "lookup.cache.caching-missing-key"
OLD_LOOKUP_OPTIONS = (
    ConnectorOption(
        key=_OLD_ROWS, kind="int", least=1, doc="With lookup.cache.ttl: PARTIAL, in older versions."
    ),
    ConnectorOption(key=_OLD_TTL, kind="duration", doc="As `lookup.partial-cache.expire-after-write`."),
    ConnectorOption(
        key=_OLD_MISSES, kind="bool", default="true", doc="As `lookup.partial-cache.cache-missing-key`."
    ),
)
"""Options of connectors that are older than ``lookup.cache``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """Seconds after which a cached lookup expires, None: never. ``misses``: keys without rows are cached."""

    max_rows: int | None = None
    after_write: float | None = None
    after_access: float | None = None
    misses: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """Reloads ``seconds`` after the end of a load, or after its start."""

    seconds: float
    from_start: bool = False

    def due(self, first: float, started: float, ended: float) -> float:
        """The time of the next load. Times are Unix seconds; ``first`` is the start of the first load."""
        return (started if self.from_start else ended) + self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Reloads at a ``time`` of day, in its own zone or the worker's, every ``days`` days."""

    time: dt.time
    days: int = 1

    def due(self, first: float, started: float, ended: float) -> float:
        begin = dt.datetime.fromtimestamp(first, self.time.tzinfo)
        at = dt.datetime.combine(begin.date(), self.time)
        while at.timestamp() <= first:
            at += dt.timedelta(days=1)
        while at.timestamp() <= ended:
            at += dt.timedelta(days=self.days)
        return at.timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    reload: Periodic | Timed


Caching = Partial | Full | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Lookups of keys without rows are repeated up to ``attempts`` times, ``delay`` seconds apart."""

    delay: float
    attempts: int


def caching(table_options: Mapping[str, str]) -> Caching:
    """The caching of the options. ValidationError if an option lacks another that it needs."""
    options = OptionValues((*LOOKUP_OPTIONS, *OLD_LOOKUP_OPTIONS), table_options)
    kind = options[CACHE].upper()
    if kind == "NONE" and _OLD_ROWS in table_options and _OLD_TTL in table_options:
        after = _seconds(options[_OLD_TTL])
        return Partial(max_rows=options[_OLD_ROWS], after_write=after, misses=options[_OLD_MISSES])
    if kind == "PARTIAL":
        return Partial(
            max_rows=options[_MAX_ROWS],
            after_write=_seconds(options[_AFTER_WRITE]),
            after_access=_seconds(options[_AFTER_ACCESS]),
            misses=options[_MISSES],
        )
    return Full(reload=_reload(options)) if kind == "FULL" else None


def _reload(options: OptionValues) -> Periodic | Timed:
    strategy = options[_STRATEGY].upper()
    key = _INTERVAL if strategy == "PERIODIC" else _TIME
    value = options[key]
    if value is None:
        raise ValidationError(
            f"Missing '{key}': '{CACHE}' = 'FULL' with the reload strategy {strategy} needs it."
        )
    if isinstance(value, Duration):
        if value.seconds <= 0:
            raise ValidationError(f"The value of '{key}' must be positive.")
        return Periodic(seconds=value.seconds, from_start=options[_MODE].upper() == "FIXED_RATE")
    try:
        return Timed(time=dt.time.fromisoformat(value), days=options[_DAYS])
    except ValueError:
        raise ValidationError(
            f"Could not parse value '{value}' for key '{key}': it is not an ISO time such as 10:15, 10:15Z."
        ) from None


def _seconds(duration: Duration | None) -> float | None:
    return None if duration is None else duration.seconds
