"""FROM: tables, joins, table functions and VALUES. Each item is a source with its scope."""
