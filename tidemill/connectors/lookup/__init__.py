"""Tables that are asked by key: what every connector that can be asked has in common.

``options`` says how a table wants to be asked and what is kept of its answers; ``asking`` makes of that, and
of the connector's table, what a worker asks. ``partial_cache`` keeps what was asked lately, ``whole_table`` a
copy of everything. All of them find rows by ``keyed_rows``.
"""
