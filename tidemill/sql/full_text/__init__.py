"""Prints a query as Flink does, with every name in full. ``names`` has the full names, ``queries`` prints
blocks and relations, ``expressions`` and ``functions`` their expressions. ``stars`` only expands the stars of
a query."""
