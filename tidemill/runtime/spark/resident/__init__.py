"""Epochs without a Spark job each: one job stays, and its Python workers run the tasks of many epochs.

A Spark job takes a tenth of a second beside its work: frames are built, a plan is made, stages are scheduled.
So one job holds a Python worker per slot. The driver sends them the tasks of an epoch over Unix sockets, and
gets their batches back. A Spark job would run the same tasks (see ``runtime.spark.epoch``). Only the runner
of a step differs, and the way of its batches to the next step.

- ``fitness``: which jobs can do without the JVM in their epochs.
- ``steps``: runs the steps of an epoch, one after the other.
- ``workers``: the job that stays, its start, its end, and who may have its slots.
- ``turns``: several jobs share the workers, in turn.
- ``connection``: the messages between the driver and a worker.
- ``worker``: the worker's side.
- ``epochs``: decides for each epoch of a job whether it runs here, and handles failures.

Guarantee: if an epoch fails here, it leaves nothing. It runs again as a Spark job from the last commit, so
users see the errors of the Spark job.
"""
