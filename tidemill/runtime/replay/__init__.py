"""A job's query once more, over exactly the rows that the job has read.

``replaying`` runs the query, by the epochs of ``runtime.epoch_loop``, into a directory of its own. What its
sinks would get is kept (``captured``); ``runtime.spark.contents`` makes tables of that and compares them.
``clock`` refuses queries that answer otherwise when they run again. ``backfill`` gives a job another query, as
if that had run from the start; a session's VERIFY JOB compares what the job has with what it should have.
"""
