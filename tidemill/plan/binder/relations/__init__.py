"""FROM: tables, joins, functions of tables, VALUES; each a source with its scope."""
