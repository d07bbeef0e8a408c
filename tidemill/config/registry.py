"""All options, by area, for validation and the generated documentation page.

Keys that are not here are accepted and kept as text, as Flink does: connectors, other tools and
Spark (``spark.*``, also as ``tidemill.spark.*``) read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidemill.config import (
    batch_options,
    client_options,
    cluster_options,
    emit_options,
    epoch_options,
    execution_options,
    gateway_options,
    history_options,
    hiveserver2_options,
    job_options,
    mini_batch_options,
    optimizer_options,
    pipeline_options,
    python_options,
    restart_options,
    sink_options,
    table_options,
    watermark_options,
)
from tidemill.config.option import Configuration, Option
from tidemill.config.refused_options import check_dialect, check_refused
from tidemill.errors import ValidationError

OWN_PREFIX = "tidemill."
SPARK_PREFIX = "tidemill.spark."


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A section of the options page."""

    title: str
    options: tuple[Option[Any], ...]


AREAS = (
    Area(title="Execution", options=execution_options.OPTIONS),
    Area(title="Batch", options=batch_options.OPTIONS),
    Area(title="Epochs", options=epoch_options.OPTIONS),
    Area(title="Mini-batch", options=mini_batch_options.OPTIONS),
    Area(title="Early and late results", options=emit_options.OPTIONS),
    Area(title="Watermarks", options=watermark_options.OPTIONS),
    Area(title="Planner", options=optimizer_options.OPTIONS),
    Area(title="Sources, sinks and state", options=sink_options.OPTIONS),
    Area(title="Tables and time", options=table_options.OPTIONS),
    Area(title="Jobs", options=pipeline_options.OPTIONS),
    Area(title="Audits and autoscaling", options=job_options.OPTIONS),
    Area(title="History", options=history_options.OPTIONS),
    Area(title="Restarts", options=restart_options.OPTIONS),
    Area(title="User functions", options=python_options.OPTIONS),
    Area(title="Cluster", options=cluster_options.OPTIONS),
    Area(title="Gateway", options=gateway_options.OPTIONS),
    Area(title="HiveServer2 endpoint", options=hiveserver2_options.OPTIONS),
    Area(title="Client", options=client_options.OPTIONS),
)
BY_KEY: dict[str, Option[Any]] = {key: o for area in AREAS for o in area.options for key in o.keys}

# Flink checks these options at SET, and all others when a statement reads them. Our own are checked at SET.
_CHECKED_AT_SET = frozenset({execution_options.RUNTIME_MODE.key})


def check_at_set(key: str, value: str) -> None:
    """Raises ValidationError if SET refuses the value."""
    if key.startswith(OWN_PREFIX) and not key.startswith(SPARK_PREFIX) and key not in BY_KEY:
        raise ValidationError(
            f"There is no option '{key}'.", expected=tuple(k for k in BY_KEY if k.startswith(OWN_PREFIX))
        )
    check_dialect(key, value)
    option = BY_KEY.get(key)
    if option is not None and (option.own or key in _CHECKED_AT_SET):
        option.parse(value)


def check_all(configuration: Configuration) -> None:
    """Raises ValidationError, with key and value, for the first known key with an invalid value, and
    NotSupportedError for values of Flink's that Tidemill would ignore."""
    check_refused(configuration)
    for key in configuration:
        if key in BY_KEY:
            configuration.read(BY_KEY[key])
