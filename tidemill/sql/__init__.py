"""Flink's dialect.

``parser`` parses statements, expressions and types into the nodes of ``statements`` and
``expressions``, with ``positions``. ``splitter`` splits scripts; ``lexer`` and ``reserved`` have the tokens
and reserved words. Only ``parser`` imports ``grammar/``.
"""
