"""Importing this module registers every operator's translation with ``stream.compile_node``."""

from __future__ import annotations

from tidemill.runtime.compile import aggregate, join, over, rank, stream

compile_node = stream.compile_node

__all__ = ["aggregate", "compile_node", "join", "over", "rank"]
