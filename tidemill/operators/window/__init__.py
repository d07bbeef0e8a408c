"""Windows by event time. Others import ``aggregate`` (the spec of a window aggregation) and ``slices``.

``slices`` cuts time: rows belong to one slice, windows are made of slices. ``clock`` says when a window's end
has come. ``aggregate`` keeps what slices hold until their windows fire.
"""
