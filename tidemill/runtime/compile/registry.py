"""Importing this module registers every operator's translation with ``shared.build``."""

from __future__ import annotations

from tidemill.runtime.compile import aggregate, join, over, rank, shared, stream

compile_node = shared.compile_node

__all__ = ["aggregate", "compile_node", "join", "over", "rank", "stream"]
