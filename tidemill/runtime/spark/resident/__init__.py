"""Epochs without a Spark job each: one job stays, and its Python workers run the tasks of many epochs.

A Spark job takes a tenth of a second beside its work: frames are built, a plan is made, stages are scheduled.
So one job holds a Python worker per slot. The driver sends them the tasks of an epoch over Unix sockets, and
gets their batches back; a small epoch is one task. A Spark job would run the same steps (see
``runtime.spark.epoch``).

- ``asked``: what the workers are asked for in one epoch.
- ``workers``: the job that stays, its start, its end, and who may have its slots.
- ``turns``: several jobs share the workers, in turn.
- ``connection``: the messages between the driver and a worker.
- ``worker``: the worker's side.
- ``epochs``: decides for each epoch of a job whether it runs here, and handles failures.

Guarantee: if an epoch fails here, it leaves nothing. It runs again as a Spark job from the last commit, so
users see the errors of the Spark job.
"""
