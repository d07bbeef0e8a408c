"""``table.exec.emit.*``: when windows show what they have other than once at their end."""

from __future__ import annotations

from tidemill.config import emit_options as o
from tidemill.config.option import Configuration, Duration, Option
from tidemill.errors import ValidationError
from tidemill.physical import nodes as p


def emit(config: Configuration, *, rowtime: bool) -> p.Emit | None:
    """What the options ask of a window; None: one result, at the end. By processing time no row is late.
    ValidationError where they do not fit together."""
    early = _delay(config, o.EARLY_FIRE_ENABLED, o.EARLY_FIRE_DELAY)
    if not rowtime:
        return None if early is None else p.Emit(early=early)
    late = _delay(config, o.LATE_FIRE_ENABLED, o.LATE_FIRE_DELAY)
    lateness = config.read(o.ALLOW_LATENESS).milliseconds
    if late is not None and not lateness:
        raise ValidationError(
            f"'{o.LATE_FIRE_ENABLED.key}' shows nothing while no row may be late",
            hint=f"Set '{o.ALLOW_LATENESS.key}' to how far the watermark may be beyond a window's end when a "
            "row still counts.",
        )
    if early is None and not lateness:
        return None
    return p.Emit(early=early, late=late, lateness=lateness)


def _delay(config: Configuration, enabled: Option[bool], delay: Option[Duration]) -> int | None:
    if not config.read(enabled):
        return None
    if delay.key not in config:
        raise ValidationError(
            f"'{enabled.key}' is set, '{delay.key}' is not",
            hint=f"SET '{delay.key}' = '0 s' shows every change with its epoch.",
        )
    return config.read(delay).milliseconds
