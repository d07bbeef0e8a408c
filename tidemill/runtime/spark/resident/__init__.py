"""Small epochs without a Spark job each: one job stays, and its Python workers run the tasks of many epochs.

A Spark job for a small epoch takes longer than its work: frames are built, a plan is made, stages are
scheduled. So one job holds a Python worker per slot. The driver sends them the tasks of an epoch over Unix
sockets, and gets their batches back. The tasks are those that Spark would run (see ``runtime.spark.epoch``):
what differs is who runs a step, and how its batches get to the next.

- ``fitness``: which jobs can do without the JVM in their epochs.
- ``steps``: runs the steps of an epoch, one after the other.
- ``workers``: the job that stays, its start, its end, and who may have its slots.
- ``connection``: what the driver and a worker say to each other.
- ``worker``: the worker's side.
- ``epochs``: one job's epochs: which of them run here, and what happens if that fails.

Guarantee: an epoch that does not run to its end here leaves nothing. It runs again as a Spark job, from the
last commit, and errors are those of this second run.
"""
