"""Joins: ``planning`` makes the node; ``intervals`` finds bounds on the sides' times."""
