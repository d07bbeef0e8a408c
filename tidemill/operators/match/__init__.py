"""MATCH_RECOGNIZE: rows of a key, in the order of time, against a pattern."""
