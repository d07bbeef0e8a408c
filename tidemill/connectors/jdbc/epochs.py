"""The table ``tidemill_epochs``: the last epoch of every sink that this database has.

It is written in the transaction that applies the epoch, so that what it says is what happened.
"""

from __future__ import annotations

import contextlib

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError

TABLE = "tidemill_epochs"


def create(engine: Engine) -> None:
    """Makes the table if it is not there; two jobs may do so at once."""
    if inspect(engine).has_table(TABLE):
        return
    columns = "job VARCHAR(200) NOT NULL PRIMARY KEY, epoch BIGINT NOT NULL"
    try:
        with engine.begin() as open:
            open.exec_driver_sql(f"CREATE TABLE {TABLE} ({columns})")
    except SQLAlchemyError:
        with contextlib.suppress(SQLAlchemyError):
            if inspect(engine).has_table(TABLE):
                return
        raise


def published(open: Connection, sink: str) -> int:
    """The last epoch of ``sink`` that was published here; 0 for none."""
    row = open.execute(text(f"SELECT epoch FROM {TABLE} WHERE job = :job"), {"job": sink}).fetchone()
    return int(row[0]) if row else 0


def record(open: Connection, sink: str, epoch: int) -> None:
    open.execute(
        text(
            f"INSERT INTO {TABLE} (job, epoch) VALUES (:job, :epoch)"
            " ON CONFLICT (job) DO UPDATE SET epoch = excluded.epoch"
        ),
        {"job": sink, "epoch": epoch},
    )
