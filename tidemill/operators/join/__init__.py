"""Joins of two changelogs. Others import ``operator`` (the spec) and ``residual`` (its condition).

``operator`` -> ``step`` (one epoch) -> ``sides`` (rows by key), ``state`` (what is kept), ``pairs`` (what
matches); ``null_aware`` and ``loose`` are NOT IN; ``shape`` what they all read of the spec.
"""
