"""The connector ``postgres-cdc``.

``connector`` makes the source (``source``), which plans on the driver with what ``server`` asks and
``fitting`` checks; ``offsets`` is the position that it keeps. Tasks read with ``reading``: ``messages`` makes
rows of the server's messages, ``tuples`` takes rows apart, ``texts`` gives values their types.
"""
