"""Joins of two changelogs. Others import ``operator`` (the spec) and ``residual`` (its condition).

``operator`` -> ``step`` (one epoch) -> ``sides`` (rows by key), ``state`` (stored rows), ``pairs`` (matches).
``null_aware`` and ``loose`` are NOT IN; ``shape`` is the spec that all of them read.
"""
