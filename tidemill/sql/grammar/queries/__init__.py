"""Queries: ``query`` (WITH, set operations, LIMIT) over ``select`` over ``relations`` (FROM)."""
