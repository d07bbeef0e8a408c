"""Stores: what is kept of the rows of windows.

``partial_aggregates`` keeps accumulators, or rows with their weights; ``first_slice_distinct`` and
``slice_sets`` keep distinct values apart from rows. They are kept by slice (``sliced``), by session
(``sessions``), or by window and slice (``sliced_sessions``, for windows that grow).

``overlapping``, ``views`` and ``pane_lookup`` read them: for windows that share slices, for windows of one
start, and for some windows out of their turn.
"""
