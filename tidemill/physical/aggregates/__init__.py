"""Group aggregates: ``planning`` makes the node, the other modules its levels and phases."""
