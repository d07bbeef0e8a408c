"""Group aggregates: ``planning`` makes the node, the others its levels and phases."""
