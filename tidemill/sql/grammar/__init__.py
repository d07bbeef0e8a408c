"""Flink's grammar, read off one cursor. Others import ``statements.statement``, ``trees`` and ``types``.

A part is a small class with the cursor and the parts it stands on; ``trees`` puts those of expressions
and queries together, ``statements/`` those of statements. ``nested`` is the way back from a part to what
holds it.
"""
