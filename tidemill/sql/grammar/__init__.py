"""Flink's grammar over one cursor. Other packages import ``statements.statement``, ``trees`` and ``types``.

A part is a small class with the cursor and the parts that it uses. ``trees`` composes the parts of
expressions and queries, ``statements/`` the parts of statements. A part reaches the parts that contain it
through ``nested``.
"""
