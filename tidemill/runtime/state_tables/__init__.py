"""The state in a savepoint as tables.

``naming`` says which tables there are and what their columns are called, ``listings`` makes tables about
them. ``source`` reads either in Spark's workers, for the connector ``savepoint`` (``connector``).
"""
