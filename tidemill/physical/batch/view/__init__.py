"""Flink's view of a batch plan for EXPLAIN: ``flink_view`` builds it, ``text`` prints it."""
