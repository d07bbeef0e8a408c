"""A job's query once more, over exactly the rows that the job has read.

``replaying`` runs the query, by the epochs of ``runtime.epoch_loop``, into a directory of its own, and keeps
the rows of its sinks (``captured``). ``runtime.spark.contents`` makes tables of these rows and compares them.
``clock`` refuses queries that answer otherwise when they run again. ``backfill`` gives a job another query,
as if it had run from the beginning. ``verify`` compares a job's sinks and state with those of a second run.
"""
