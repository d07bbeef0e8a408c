"""One epoch's work, from the exec graph to what runs.

- ``facts``: what the work of one epoch depends on; ``reads``: how its sources are read.
- ``shapes``: which columns of a node's batches a step takes, and under which names.
- ``tasks``: the picklable tasks that Python workers run: kernels, exchange writers, readings.
- ``steps``: the work as data: which tasks follow each other in one worker, and where rows are exchanged.
- ``arrow_steps``: makes these steps of the nodes that work on Arrow batches.
- ``fitness``: which jobs have steps alone, and no rows in the JVM.
- ``runner``: runs steps without frames; ``programs``: what a worker is asked to run of them.
- ``arrow_epochs``: all steps of an epoch, what they give, and a small epoch as one Spark task.
- ``frames``: makes lazy Spark frames of the steps, and of the nodes that the JVM computes.
- ``spark_job``: an epoch as a Spark job, in either way.
"""
