"""What would lose changes of a table, and what cannot be followed: errors that say so."""

from __future__ import annotations

import re

import pytest

from tests.connectors.postgres import Server
from tests.connectors.postgres_cdc.sources import COLUMNS, NO_LIMIT, cdc, step
from tests.connectors.sources import table
from tidemill.connectors.registry import validate
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError, NotSupportedError, TidemillError, ValidationError


def changed(server: Server, statement: str) -> Exception:
    """What is said after a change of 'id' and ``statement``."""
    made = cdc(server)
    with server.connect() as open:
        _, at = step(made, None)
        open.execute("INSERT INTO t VALUES (1, 'a')")
        open.execute(statement)
        with pytest.raises((TidemillError, WorkerError)) as caught:
            step(made, at)
    return caught.value


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("TRUNCATE t", r"emptied by TRUNCATE in the transaction at"),
        ("ALTER TABLE t DROP COLUMN name", r"has no column 'name'"),
        ("ALTER TABLE t ALTER name TYPE varchar(9)", r"column 'name' has another type now"),
        (
            "ALTER TABLE t DROP COLUMN name; ALTER TABLE t ADD name TEXT",
            r"'name' was dropped and added again",
        ),
        ("ALTER TABLE t RENAME TO u", r"does not exist"),
        (
            "DROP TABLE t; CREATE TABLE t (id INT PRIMARY KEY, name TEXT); ALTER TABLE t REPLICA"
            " IDENTITY FULL",
            r"dropped and created again",
        ),
        ("ALTER TABLE t REPLICA IDENTITY DEFAULT", r"REPLICA IDENTITY is not FULL"),
        (
            "ALTER TABLE t REPLICA IDENTITY DEFAULT; UPDATE t SET id = 2; ALTER TABLE t REPLICA"
            " IDENTITY FULL",
            r"lacks the old row",
        ),
        ("ALTER PUBLICATION dbz_publication SET (publish = 'insert')", r"leaves out some rows, or inserts"),
        ("ALTER PUBLICATION dbz_publication SET TABLE t WHERE (id > 5)", r"leaves out some rows"),
        ("ALTER PUBLICATION dbz_publication DROP TABLE t", r"does not have the table"),
        ("DROP PUBLICATION dbz_publication", r"publication 'dbz_publication' does not exist"),
        ("SELECT pg_drop_replication_slot('s')", r"slot 's' does not exist any more. The changes since 0/"),
        (
            "SELECT pg_replication_slot_advance('s', pg_current_wal_flush_lsn())",
            r"slot 's' has moved on to .* read up to 0/",
        ),
    ],
)
def test_what_would_lose_changes_is_told(server: Server, statement: str, said: str) -> None:
    assert re.search(said, str(changed(server, statement)))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"decoding.plugin.name": "wal2json"}, r"'decoding.plugin.name' = 'wal2json'"),
        ({"debezium.snapshot.mode": "never"}, r"'debezium.snapshot.mode': Debezium's properties"),
        ({"scan.read-changelog-as-append-only.enabled": "true"}, "append-only"),
        ({"scan.startup.mode": "earliest-offset"}, "Unsupported value 'earliest-offset'"),
        ({"slot.nam": "x"}, r"slot\.nam"),
        ({"changelog-mode": "upsert"}, "Primary key must be present"),
    ],
)
def test_options_that_are_refused(more: dict[str, str], said: str) -> None:
    plain = dict.fromkeys(
        ("hostname", "username", "password", "database-name", "schema-name", "table-name", "slot.name"), "x"
    )
    declared = table(COLUMNS, {"connector": "postgres-cdc", **plain, **more})
    with pytest.raises((NotSupportedError, ValidationError), match=said):
        validate(declared, declared.options, role="source")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DROP TABLE t", r"table 'public\.t': it does not exist"),
        ("DROP TABLE t; CREATE VIEW t AS SELECT 1 AS id, 'a' AS name", "is a view"),
        ("DROP TABLE t; CREATE TABLE t (id INT, name TEXT) PARTITION BY RANGE (id)", "a partitioned table"),
        (
            "ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ALTER id TYPE numeric",
            "'id' is of type numeric",
        ),
        ("ALTER TABLE t RENAME name TO title", r"no column 'name'"),
        ("ALTER TABLE t SET UNLOGGED", "unlogged"),
        ("ALTER TABLE t REPLICA IDENTITY DEFAULT", "REPLICA IDENTITY is not FULL"),
        (
            "SELECT pg_create_logical_replication_slot('s', 'test_decoding')",
            "slot 's' decodes with test_decoding",
        ),
    ],
)
def test_tables_that_cannot_be_followed(server: Server, statement: str, said: str) -> None:
    with server.connect() as open:
        open.execute(statement)
    with pytest.raises(TidemillError, match=said):
        cdc(server).next_offset(None, NO_LIMIT)
    with pytest.raises(ConnectorError, match=r"public\.t"):
        cdc(server, port="1").next_offset(None, NO_LIMIT)
