"""Properties of a node's rows: changelog mode, keys, order, mini-batch and event time."""
