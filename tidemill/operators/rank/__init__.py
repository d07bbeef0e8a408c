"""Top-N and deduplication. Others import ``operator`` (the spec).

``operator`` chooses between ``step`` (keeps all rows of a partition) and ``top_one`` (append-only input, one
record per partition). ``shown_rows`` computes the difference of the emitted rows. All read the spec in
``shape``.
"""
