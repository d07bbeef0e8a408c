"""Batch plans: the tree that becomes Spark frames and that EXPLAIN shows. ``nodes`` has its nodes,
``planner`` builds it from a logical plan, and ``view`` shows it."""
