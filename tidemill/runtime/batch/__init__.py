"""Batch mode: a batch plan in, one Spark job out, with adaptive execution or with pipelined exchanges.

``query`` collects the rows of a plan; ``insert`` stages and publishes them. Both run the plan by a
strategy (``strategy``), as a lazy frame (``frames``) over the tables that it reads (``scans``;
``limited_rows`` for a LIMIT), and as a job that users can cancel and that is recorded (``recording``).
"""
