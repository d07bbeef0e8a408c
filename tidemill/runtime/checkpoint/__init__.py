"""A job's checkpoint directory, and savepoints.

``directory`` is made of ``records``, is held by ``ownership``, and belongs to an ``identity``. A
``savepoint`` keeps what one epoch has left; a job starts from it by ``origin``. ``savepoint_report``
describes savepoints, ``savepoint_export`` writes them as Parquet.
"""
