"""Statements: ``statement`` has the table of first words, the others are read behind theirs."""
