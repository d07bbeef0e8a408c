"""Importing this module registers every operator's translation with ``shared.build``."""

from __future__ import annotations

from tidemill.runtime.compile import (
    aggregate,
    changelog_functions,
    event_time,
    interval_join,
    join,
    lookup_join,
    over,
    rank,
    shared,
    sort,
    stream,
    temporal_join,
    window_buffers,
    window_rows,
    windows,
)

compile_node = shared.compile_node

__all__ = [
    "aggregate",
    "changelog_functions",
    "compile_node",
    "event_time",
    "interval_join",
    "join",
    "lookup_join",
    "over",
    "rank",
    "sort",
    "stream",
    "temporal_join",
    "window_buffers",
    "window_rows",
    "windows",
]
