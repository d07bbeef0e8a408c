"""One epoch's work, from the exec graph to what runs.

- ``facts``: what the work of one epoch depends on; ``reads``: how its sources are read.
- ``shapes``: which columns of a node's batches a step takes, and under which names.
- ``tasks``: the picklable tasks that Python workers run: kernels, exchange writers, readings.
- ``steps``: the work as data: which tasks follow each other in one worker, and where rows are exchanged.
- ``arrow_steps``: makes these steps of the nodes that work on Arrow batches.
- ``frames``: makes lazy Spark frames of the steps, and of the nodes that the JVM computes.
"""
