"""Windows of time: assigner × trigger × store.

- ``assigners`` determine the windows of a row: by the clock, or by the rows of a key (data-driven windows).
- ``triggers`` determine when a window emits its result: at its end, early, late, by processing time.
- ``store`` keeps the content of windows: accumulators or rows, by slice or by session.

There is one kernel for each store:

- ``aggregate``: windows made of slices; ``shared_values``: the same for distinct values that keys share;
- ``session`` and, for rows that may be taken back, ``retractable_session``;
- ``dynamic``: windows that grow;
- ``window_buffer``: Top-N, deduplication and joins by window.

A kernel shows its windows once if its trigger is ``AT_END``. With other triggers it remembers what it has
shown, and shows what has changed: see ``aggregate_changes``, ``dynamic_changes``, ``buffer_changes``.

``shape`` is what all aggregations are told, ``clock`` says when a local time has come, ``output`` makes the
columns that tell a window. ``local`` and ``local_sessions`` do a part of the work before the exchange.
"""
