"""Joins of rows whose times are a bounded distance apart. Others import ``operator`` (the spec)."""
