"""Plans as text, as Flink prints them: ``text`` is EXPLAIN, ``attributes`` has the nodes' names."""
