"""Mini-batch in the plan: its configuration and where MiniBatchAssigner nodes stand."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.config.mini_batch_options import MINI_BATCH_ALLOW_LATENCY, MINI_BATCH_ENABLED, MINI_BATCH_SIZE
from tidemill.config.option import Configuration
from tidemill.errors import ValidationError


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniBatchConfig:
    """``latency`` in milliseconds (0: not set); ``size`` in rows (None: no limit)."""

    latency: int
    size: int | None


def mini_batch_config(config: Configuration, *, explicit: bool) -> MiniBatchConfig | None:
    """The checked options; None where mini-batch is off.

    ``explicit`` counts it as on only if the user set it (what Flink's EXPLAIN goes by). Raises
    ValidationError that names the key of a bad value.
    """
    enabled = config.read(MINI_BATCH_ENABLED)
    if not enabled or (explicit and MINI_BATCH_ENABLED.key not in config):
        return None
    size = config.read(MINI_BATCH_SIZE) if MINI_BATCH_SIZE.key in config else None
    if size is not None and size <= 0:
        raise ValidationError(f"Key: '{MINI_BATCH_SIZE.key}', value '{size}' must be positive.")
    return MiniBatchConfig(latency=config.read(MINI_BATCH_ALLOW_LATENCY).milliseconds, size=size)
