"""Logical plan -> physical nodes -> the plan that runs, and EXPLAIN.

Importing any module of this package imports ``operators``, so that every question has all its answers.
"""

from __future__ import annotations

from tidemill.physical import operators

__all__ = ["operators"]
