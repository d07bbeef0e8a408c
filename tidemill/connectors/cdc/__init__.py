"""What the connectors share that follow a table and its changes: the life of the source (``source``), and the
batches that its tasks give (``batches``). ``mysql_cdc`` and ``postgres_cdc`` know the logs of their servers.
"""
