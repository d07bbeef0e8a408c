"""Options that nobody reads.

A key that Tidemill does not know is accepted, as in Flink, so that Flink's scripts run. What would change
an answer is refused by name (``refused_options``); keys of Flink's cluster, which cannot, pass without a
word; for the others there is a warning, with the nearest key that exists.
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
    """What to warn of; '' for a key that something reads."""
    if key in BY_KEY or key in ONLY or key.startswith((SPARK_PREFIX, "spark.")):
        return ""
    close = get_close_matches(key.lower(), [*BY_KEY, *ONLY], n=1, cutoff=_CLOSE)
    if close:
        return f"There is no option '{key}': it changes nothing. Did you mean '{close[0]}'?"
    if key.startswith(_OF_THE_CLUSTER):
        return ""
    return f"Tidemill has no option '{key}': it changes nothing. docs/options.md lists those there are."
