"""Plans as Flink prints them: ``text`` is EXPLAIN, ``attributes`` has the nodes' names and attributes."""
