"""A batch plan as one lazy Spark frame: ``frames`` goes through the plan, the others make one node's frame."""
