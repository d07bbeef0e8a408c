"""Warns of options that nobody reads.

Tidemill accepts unknown keys, as Flink does, so that Flink's scripts run. Options that would change results
are refused (``refused_options``). Keys of Flink's cluster cannot change results, so they pass silently. For
other unknown keys there is a warning, with the nearest existing key.
"""

from __future__ import annotations

from difflib import get_close_matches

from tidemill.config.refused_options import ONLY
from tidemill.config.registry import BY_KEY, SPARK_PREFIX

_OF_THE_CLUSTER = tuple(
    f"{area}."
    for area in (
        "blob",
        "classloader",
        "cluster",
        "env",
        "execution.checkpointing",
        "fs",
        "gs",
        "heartbeat",
        "high-availability",
        "io",
        "jobmanager",
        "kubernetes",
        "metrics",
        "pekko",
        "pipeline",
        "rest",
        "restart-strategy",
        "s3",
        "security",
        "slotmanager",
        "state",
        "taskmanager",
        "web",
        "yarn",
        "zookeeper",
    )
)
_CLOSE = 0.85


def unknown_option(key: str) -> str:
    """The warning for an unknown key; '' for known keys and keys of Flink's cluster."""
    if key in BY_KEY or key in ONLY or key.startswith((SPARK_PREFIX, "spark.")):
        return ""
    close = get_close_matches(key.lower(), [*BY_KEY, *ONLY], n=1, cutoff=_CLOSE)
    if close:
        return f"There is no option '{key}': it changes nothing. Did you mean '{close[0]}'?"
    if key.startswith(_OF_THE_CLUSTER):
        return ""
    return f"Tidemill has no option '{key}': it changes nothing. docs/options.md lists those there are."
