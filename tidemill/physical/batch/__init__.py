"""Batch plans: the tree that Spark frames are made of and that EXPLAIN shows. ``nodes`` says what it is made
of, ``planner`` makes it of a logical plan, ``attributes`` and ``explain`` show it."""
