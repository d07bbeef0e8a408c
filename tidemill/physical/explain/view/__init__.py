"""A streaming plan in Flink's words: the nodes that Flink's planner has and Tidemill's does not.

``flink_view.flink_view`` makes the view for EXPLAIN. Flink cuts an aggregation in phases; Tidemill has one
operator for all of them, so the phases stand here and nowhere else.
"""
