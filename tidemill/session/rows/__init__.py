"""The rows of a result: decoded (``decoder``) into Python values (``values``, ``row``), as pandas frames
(``pandas_frames``), and as text in Flink's tableau style (``tableau``).
"""
