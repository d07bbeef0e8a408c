"""Top-N and deduplication. Others import ``operator`` (the spec).

``operator`` chooses between ``step`` (all rows of a partition are kept) and ``top_one`` (append-only input,
one record a partition); ``shown_rows`` is the difference of what is shown; ``shape`` what they read.
"""
