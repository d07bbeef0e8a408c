"""A batch plan in Flink's words, for EXPLAIN: ``flink_view`` makes it, ``text`` writes it."""
