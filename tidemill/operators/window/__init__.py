"""Windows by event time. Others import ``aggregate`` and ``session`` (the specs of window aggregations),
``output`` and ``slices``.

``slices`` cuts time: rows belong to one slice, windows are made of slices. ``clock`` says when a window's end
has come. ``aggregate`` keeps what slices hold until their windows fire. Sessions have no slices: ``merging``
says which rows make one, ``session`` keeps what they hold. ``shape`` is what both aggregations are told.
``shared_values`` is ``aggregate`` for distinct values that keys share.
"""
