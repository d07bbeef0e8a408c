"""Stores: the state of windows.

``partial_aggregates`` keeps accumulators, or rows with their weights; ``first_slice_distinct`` and
``slice_sets`` keep distinct values apart from rows. They are kept by slice (``sliced``), by session
(``sessions``), or by window and slice (``sliced_sessions``, for windows that grow).

``overlapping``, ``views`` and ``pane_lookup`` read them: for windows that share slices, for windows with one
start, and for single windows with early or late results.
"""
