"""GROUP BY. Others import ``operator`` (the spec).

``operator`` chooses between ``net`` (one change a key and epoch) and ``per_record`` (Flink's change for every
row); ``shape`` is what both read of the spec. The functions' accumulators are in ``operators/aggregates/``.
"""
