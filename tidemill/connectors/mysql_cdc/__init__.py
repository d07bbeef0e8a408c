"""The connector ``mysql-cdc``, for MySQL and MariaDB.

``connector`` makes the source (``source``), which plans on the driver with what ``server`` asks; ``offsets``
is the position that it keeps. ``binlog`` reads whole transactions, ``values`` gives values their types, and
``reading`` makes batches in the tasks.
"""
