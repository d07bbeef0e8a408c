"""Flink's dialect. ``parser`` and ``types`` read statements, expressions and types; ``statements`` and
``expressions`` say what comes out, ``positions`` where it stood; ``splitter`` cuts scripts, ``lexer`` and
``reserved`` know words. How text is read is in ``grammar/``, for ``parser`` and ``types`` alone.
"""
