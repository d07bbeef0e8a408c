"""A streaming plan in Flink's words: the nodes that Flink's planner has and Tidemill's does not.

``flink_view.flink_view`` makes the view for EXPLAIN. Flink cuts an aggregation in phases; Tidemill has one
operator for all of them. Flink keeps some Top-N without -U; Tidemill needs each -U. What follows from this
stands here and nowhere else.
"""
