"""GROUP BY. Others import ``operator`` (the spec).

``operator`` chooses between ``net`` (one change per key and epoch) and ``per_record`` (Flink's change for
every row). Both read the spec in ``shape``. The functions' accumulators are in ``operators/aggregates/``.
"""
