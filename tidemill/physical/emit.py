"""``table.exec.emit.*``: early and late results of windows."""

from __future__ import annotations

from tidemill.config import emit_options as o
from tidemill.config.option import Configuration, Duration, Option
from tidemill.errors import ValidationError
from tidemill.physical import nodes as p


def emit(config: Configuration, *, rowtime: bool) -> p.Emit | None:
    """The emit options of a window; None for one result at the end. By processing time no row is late.
    ValidationError if the options contradict each other."""
    early = _delay(config, o.EARLY_FIRE_ENABLED, o.EARLY_FIRE_DELAY)
    if not rowtime:
        return None if early is None else p.Emit(early=early)
    late = _delay(config, o.LATE_FIRE_ENABLED, o.LATE_FIRE_DELAY)
    lateness = allowed_lateness(config)
    if early is None and not lateness:
        return None
    return p.Emit(early=early, late=late, lateness=lateness)


def corrects_late_rows(config: Configuration) -> bool:
    """Whether late rows change emitted results, of windows with a known allowed lateness."""
    return config.read(o.LATE_ROWS).lower() == "correct"


def allowed_lateness(config: Configuration) -> int:
    """The allowed lateness in ms. As in Flink, it is 0 if no option emits late results."""
    asking = [f"'{o.LATE_FIRE_ENABLED.key}'"] * config.read(o.LATE_FIRE_ENABLED)
    asking += [f"'{o.LATE_ROWS.key}' = 'correct'"] * corrects_late_rows(config)
    lateness = config.read(o.ALLOW_LATENESS).milliseconds
    if asking and not lateness:
        raise ValidationError(
            f"{asking[0]} has no effect on windows without allowed lateness",
            hint=f"Set '{o.ALLOW_LATENESS.key}' to how far the watermark may be beyond a window's end when a "
            "row still counts.",
        )
    return lateness if asking else 0


def _delay(config: Configuration, enabled: Option[bool], delay: Option[Duration]) -> int | None:
    if not config.read(enabled):
        return None
    if delay.key not in config:
        raise ValidationError(
            f"'{enabled.key}' is set, but '{delay.key}' is not",
            hint=f"SET '{delay.key}' = '0 s' emits every change with its epoch.",
        )
    return config.read(delay).milliseconds
