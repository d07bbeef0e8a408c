"""Catalogs that outlive a session: kept in a database, or Spark's own; and the file that lists catalogs."""
