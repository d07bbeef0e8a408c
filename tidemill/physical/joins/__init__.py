"""Joins: ``planning`` makes the node, ``intervals`` finds time bounds between the sides."""
