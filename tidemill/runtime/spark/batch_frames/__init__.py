"""A batch plan as one lazy Spark frame: ``frames`` goes through the plan, the others make a node's frame."""
