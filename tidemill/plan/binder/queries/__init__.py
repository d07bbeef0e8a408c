"""Queries: SELECT with its clauses, set operations, INSERT."""
