"""The common part of connectors that follow a table and its changes: the life of the source, and the batches
that its tasks give (``source``). ``mysql_cdc`` and ``postgres_cdc`` know the logs of their servers.
"""
