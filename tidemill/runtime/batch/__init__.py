"""Batch mode: a batch plan in, one Spark job out, with adaptive execution or with pipelined exchanges.

``query`` collects the rows of a plan, and ``insert`` has them staged and published. Both run it by a
strategy (``strategy``), as a lazy frame (``frames``) over tables that are read (``scans``; ``limited_rows``
for a LIMIT), and as a job that a person can end and that is recorded (``recording``).
"""
