"""postgres-cdc against a real server, without Spark: what is planned, what is read, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.connectors.postgres import Server
from tests.connectors.postgres_cdc import cdc_options, forget_slots
from tests.connectors.sources import source, table
from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN, RowKind
from tidemill.connectors.api import Offset, ReadLimit
from tidemill.connectors.postgres_cdc.offsets import ChangeRange, SnapshotRange, from_json, lsn_text
from tidemill.connectors.postgres_cdc.server import ExportedSnapshot
from tidemill.connectors.postgres_cdc.source import CdcSource
from tidemill.connectors.registry import validate
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError, NotSupportedError, TidemillError, ValidationError
from tidemill.types import logical as t

COLUMNS: Mapping[str, t.LogicalType] = {"id": t.INT, "name": t.STRING}
Row = tuple[Any, ...]
NO_LIMIT = ReadLimit()


@pytest.fixture
def server(postgres: Server) -> Iterator[Server]:
    """An empty database, whose slots and publications go."""
    postgres.clear()
    with postgres.connect() as open:
        open.execute("CREATE TABLE t (id INT PRIMARY KEY, name TEXT)")
        open.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    yield postgres
    forget_slots(postgres)


def cdc(
    server: Server,
    columns: Mapping[str, t.LogicalType] = COLUMNS,
    *,
    key: tuple[str, ...] = ("id",),
    fields: tuple[str, ...] | None = None,
    sequence: bool = False,
    **more: str,
) -> CdcSource:
    declared = table(columns, cdc_options(server, **more), primary_key=key)
    made = source(declared, fields=fields, streaming=True, sequence=sequence)
    assert isinstance(made, CdcSource)
    return made


def rows(made: CdcSource, start: Offset | None, end: Offset) -> list[Row]:
    """Kind and values."""
    found: list[Row] = []
    for part in parts(made, start, end):
        for batch in made.reader.read(part):
            kinds = batch.column(KIND_COLUMN).to_pylist()
            values = zip(*(batch.column(f.name).to_pylist() for f in made.reader.fields), strict=True)
            found += [(RowKind(k).short, *v) for k, v in zip(kinds, values, strict=True)]
    return found


def parts(made: CdcSource, start: Offset | None, end: Offset) -> Sequence[ChangeRange | SnapshotRange]:
    return made.parts(start, from_json(end))


def step(made: CdcSource, start: Offset | None, limit: ReadLimit = NO_LIMIT) -> tuple[list[Row], Offset]:
    """An epoch."""
    end = made.next_offset(start, limit)
    found = [] if made.is_empty(start, end) else rows(made, start, end)
    made.server.release()
    return found, end


def test_a_snapshot_and_then_changes(server: Server) -> None:
    with server.connect() as open:
        open.execute("INSERT INTO t VALUES (1, 'a'), (2, NULL)")
        made = cdc(server)
        seen, at = step(made, None)
        assert sorted(seen) == [("+I", 1, "a"), ("+I", 2, None)]
        open.execute("UPDATE t SET name = 'b' WHERE id = 1")
        open.execute("DELETE FROM t WHERE id = 2")
        open.execute("INSERT INTO t VALUES (3, '')")
        seen, after = step(made, at)
    assert seen == [("-U", 1, "a"), ("+U", 1, "b"), ("-D", 2, None), ("+I", 3, "")]
    assert rows(made, at, after) == seen  # as often as asked
    assert step(made, after) == ([], after)


def test_transactions_around_the_snapshot_are_in_it_or_behind_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is open when the snapshot is taken comes later, one that ended just before does not come
    again."""
    made = cdc(server)
    with server.connect() as open, server.connect() as other:
        export_snapshot = made.server.export_snapshot

        def export_between(_: object) -> ExportedSnapshot:
            other.execute("BEGIN")
            other.execute("INSERT INTO t VALUES (1, 'open')")
            open.execute("INSERT INTO t VALUES (2, 'ended')")
            snapshot = export_snapshot()
            open.execute("INSERT INTO t VALUES (3, 'later')")
            other.execute("COMMIT")
            return snapshot

        monkeypatch.setattr(type(made.server), "export_snapshot", export_between)
        seen, at = step(made, None)
        assert seen == [("+I", 2, "ended")]
        assert at["lsn"] < at["seen"]["until"]
        seen, at = step(made, at)
        assert seen == [("+I", 3, "later"), ("+I", 1, "open")]
        assert "seen" not in at


TYPES: list[tuple[str, t.LogicalType, str, object]] = [
    ("boolean", t.BOOLEAN, "'t'", True),
    ("smallint", t.SmallIntType(), "-32768", -32768),
    ("integer", t.INT, "7", 7),
    ("bigint", t.BIGINT, "9223372036854775807", 9223372036854775807),
    ("smallint", t.BIGINT, "5", 5),
    ("real", t.FloatType(), "'NaN'", "nan"),
    ("double precision", t.DOUBLE, "0.1", 0.1),
    ("double precision", t.DOUBLE, "'-Infinity'", float("-inf")),
    ("numeric(10, 2)", t.DecimalType(precision=10, scale=2), "-12345678.90", Decimal("-12345678.90")),
    ("numeric", t.DecimalType(precision=5, scale=1), "-1.25", Decimal("-1.3")),
    ("numeric", t.DecimalType(precision=3, scale=0), "12345", None),
    ("date", t.DateType(), "'2024-02-29'", date(2024, 2, 29)),
    ("time", t.TimeType(precision=3), "'23:59:59.9876'", 86399987),
    (
        "timestamp",
        t.TimestampType(precision=6),
        "'1969-12-31 23:59:59.999999'",
        datetime(1969, 12, 31, 23, 59, 59, 999999),
    ),
    (
        "timestamp",
        t.TimestampType(precision=3),
        "'1969-12-31 23:59:59.999999'",
        datetime(1969, 12, 31, 23, 59, 59, 999000),
    ),
    (
        "timestamptz",
        t.LocalZonedTimestampType(precision=6),
        "'2024-01-01 00:30:00+01'",
        datetime(2023, 12, 31, 23, 30, tzinfo=UTC),
    ),
    ("text", t.STRING, "'é\U0001f600 \"x\", \\\\ '", 'é\U0001f600 "x", \\\\ '),
    ("varchar(5)", t.VarCharType(length=5), "'ab'", "ab"),
    ("char(3)", t.CharType(length=3), "'a'", "a  "),
    ("jsonb", t.STRING, "'{\"a\": [1]}'", '{"a": [1]}'),
    ("uuid", t.STRING, "'00000000-0000-0000-0000-00000000000a'", "00000000-0000-0000-0000-00000000000a"),
    ("int[]", t.STRING, "'{1,2}'", "{1,2}"),
    ("bytea", t.VarBinaryType(length=2147483647), "'\\x00ff5c'", b"\x00\xff\\"),
    ("bytea", t.VarBinaryType(length=2147483647), "''", b""),
]


def test_values_are_the_same_in_snapshot_and_changes(server: Server) -> None:
    names = [f"c{n}" for n in range(len(TYPES))]
    with server.connect() as open:
        columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in zip(names, TYPES, strict=True))
        open.execute(f"CREATE TABLE kinds (id int, {columns})")
        open.execute("ALTER TABLE kinds REPLICA IDENTITY FULL")
        filled = f"INSERT INTO kinds VALUES (1, {', '.join(text for _, _, text, _ in TYPES)})"
        open.execute(filled)
        open.execute("INSERT INTO kinds (id) VALUES (2)")
        declared = {"id": t.INT, **{name: kind for name, (_, kind, *_) in zip(names, TYPES, strict=True)}}
        made = cdc(server, declared, table_name="kinds", table__name="kinds")
        seen, at = step(made, None)
        open.execute(filled)
        open.execute("INSERT INTO kinds (id) VALUES (2)")
        later, at = step(made, at)
    expected = ("+I", 1, *(value for *_, value in TYPES))
    shown = [tuple("nan" if value != value else value for value in row) for row in seen]
    assert shown == [expected, ("+I", 2, *(None for _ in TYPES))]
    assert [tuple("nan" if value != value else value for value in row) for row in later] == shown


@pytest.mark.parametrize(
    ("kind", "declared", "text"),
    [
        ("date", t.DateType(), "infinity"),
        ("timestamp", t.TimestampType(precision=6), "0044-03-15 12:00:00 BC"),
        ("numeric", t.DecimalType(precision=5, scale=1), "NaN"),
        ("bigint", t.INT, "2147483648"),
        ("time", t.TimeType(precision=0), "24:00:00"),
    ],
)
def test_a_value_that_the_declared_type_cannot_hold_is_shown(
    server: Server, kind: str, declared: t.LogicalType, text: str
) -> None:
    with server.connect() as open:
        open.execute(f"CREATE TABLE v (id int, c {kind})")
        open.execute("ALTER TABLE v REPLICA IDENTITY FULL")
        open.execute(f"INSERT INTO v VALUES (1, '{text}')")
    made = cdc(server, {"id": t.INT, "c": declared}, table__name="v")
    with pytest.raises(WorkerError, match=f"public.v.*column 'c': '{text}"):
        step(made, None)
    assert step(cdc(server, {"id": t.INT, "c": declared}, table__name="v", fields=("id",)), None)[0] == [
        ("+I", 1)
    ]


def test_changes_by_key(server: Server) -> None:
    """Without REPLICA IDENTITY FULL; a row whose key changes is deleted under its old one."""
    with server.connect() as open:
        open.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT")
        made = cdc(server, changelog__mode="upsert")
        seen, at = step(made, None)
        open.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        open.execute("UPDATE t SET name = 'c' WHERE id = 1")
        open.execute("UPDATE t SET id = 5 WHERE id = 2")
        open.execute("DELETE FROM t WHERE id = 1")
        seen, at = step(made, at)
        expected = [
            ("+I", 1, "a"),
            ("+I", 2, "b"),
            ("+U", 1, "c"),
            ("-D", 2, None),
            ("+U", 5, "b"),
            ("-D", 1, None),
        ]
        assert seen == expected
        open.execute("ALTER TABLE t REPLICA IDENTITY FULL")
        open.execute("UPDATE t SET name = 'd'")
        open.execute("UPDATE t SET id = 6")
        seen, at = step(made, at)
        assert seen == [("+U", 5, "d"), ("-D", 5, "d"), ("+U", 6, "d")]
        open.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT; ALTER TABLE t DROP CONSTRAINT t_pkey")
        open.execute("ALTER TABLE t ALTER name SET NOT NULL; CREATE UNIQUE INDEX u ON t (name)")
        open.execute("ALTER TABLE t REPLICA IDENTITY USING INDEX u")
        open.execute("UPDATE t SET id = 7")
        with pytest.raises(WorkerError, match=r"is \(name\), but the declared PRIMARY KEY is \(id\)"):
            step(made, at)


def test_large_values_that_were_left_as_they_are(server: Server) -> None:
    """The server sends them again only as a part of the row before."""
    with server.connect() as open:
        open.execute("CREATE TABLE large (id int PRIMARY KEY, n int, big text)")
        open.execute("ALTER TABLE large ALTER big SET STORAGE EXTERNAL, REPLICA IDENTITY FULL")
        columns = {"id": t.INT, "n": t.INT, "big": t.STRING}
        big = "x" * 10_000
        open.execute(f"INSERT INTO large VALUES (1, 1, '{big}')")
        made = cdc(server, columns, table__name="large")
        by_key = cdc(server, columns, table__name="large", slot_name="k", changelog__mode="upsert")
        few = cdc(
            server, columns, table__name="large", slot_name="f", changelog__mode="upsert", fields=("n",)
        )
        (_, at), (_, key_at), (_, few_at) = step(made, None), step(by_key, None), step(few, None)
        open.execute("UPDATE large SET n = 2")
        assert step(made, at)[0] == [("-U", 1, 1, big), ("+U", 1, 2, big)]
        seen, key_at = step(by_key, key_at)
        assert seen == [("+U", 1, 2, big)]
        _, few_at = step(few, few_at)
        open.execute("ALTER TABLE large REPLICA IDENTITY DEFAULT")
        open.execute("UPDATE large SET n = 3")
        with pytest.raises(
            WorkerError, match=r"column 'big': an update in the transaction at .* large value"
        ):
            step(by_key, key_at)
        assert step(few, few_at)[0] == [("+U", 3)]


def test_epochs_are_whole_transactions_in_pieces_of_any_size(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many transactions, a piece of one or few messages at a time: the rows are those of one large piece."""
    with server.connect() as open:
        made = cdc(server, sequence=True)
        _, first = step(made, None)
        for n in range(10):
            with open.transaction():
                open.execute(f"INSERT INTO t SELECT g, 'a' FROM generate_series({n * 10}, {n * 10 + 4}) g")
                open.execute(f"UPDATE t SET name = 'b{n}' WHERE id = {n * 10}")
                open.execute(f"ALTER TABLE t ADD COLUMN more{n} int")
                open.execute(f"DELETE FROM t WHERE id = {n * 10 + 1}")
    whole, end = step(made, first)
    assert len(whole) == 10 * 8
    with monkeypatch.context() as patched:
        patched.setattr("tidemill.connectors.postgres_cdc.reading._FIRST", 1)
        patched.setattr("tidemill.connectors.postgres_cdc.reading._MOST", 3)
        assert rows(made, first, end) == whole
        pieces = [b for p in parts(made, first, end) for b in made.reader.read(p)]
    numbers = [n for piece in pieces for n in piece[SEQUENCE_COLUMN].to_pylist()]
    assert numbers == sorted(set(numbers))
    at, cut, ends = first, [], []
    made = cdc(server, sequence=True)
    while True:
        seen, at = step(made, at, ReadLimit(rows=12))
        if not seen:
            break
        cut += seen
        ends.append(len(seen))
    assert cut == whole
    assert ends == [16] * 5


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


def test_tables_that_share_a_slot_lose_nothing(server: Server) -> None:
    """The slot goes no further than the table that has read least, whichever plans first."""
    one, other = cdc(server), cdc(server)
    with server.connect() as open:
        (_, at), (_, behind) = step(one, None), step(other, None)
        for n in range(3):
            open.execute(f"INSERT INTO t VALUES ({n}, 'a')")
            seen, at = step(one, at)
            assert seen == [("+I", n, "a")]
            stays, _ = step(other, behind)
            assert len(stays) == n + 1
        assert [step(other, behind)[0] for _ in range(2)] == [[("+I", n, "a") for n in range(3)]] * 2
        seen, behind = step(other, behind, ReadLimit(rows=1))
        assert seen == [("+I", 0, "a")]
        for n in (1, 2):
            seen, behind = step(other, behind, ReadLimit(rows=1))
            assert seen == [("+I", n, "a")]
        for _ in range(2):
            assert step(one, at) == ([], at)
            assert step(other, behind) == ([], behind)
        (confirmed,) = open.execute("SELECT confirmed_flush_lsn FROM pg_replication_slots").fetchone() or ()
        assert confirmed == lsn_text(at["lsn"])


def test_a_slot_moves_over_changes_of_other_tables(server: Server) -> None:
    """By an epoch without rows, once there is much of them; else the server would keep its log for ever."""
    times = iter(range(40, 1000, 40))
    made = cdc(server)
    made.clock = lambda: next(times)
    with server.connect() as open:
        _, at = step(made, None)
        open.execute("CREATE TABLE noise (a text)")
        assert made.is_empty(at, made.next_offset(at, NO_LIMIT))
        open.execute("INSERT INTO noise SELECT repeat('x', 1000) FROM generate_series(1, 20000)")
        end = made.next_offset(at, NO_LIMIT)
        assert not made.is_empty(at, end)
        assert rows(made, at, end) == []
        open.execute("INSERT INTO t VALUES (1, 'a')")
        seen, end = step(made, end)
        assert seen == [("+I", 1, "a")]


def test_changes_of_other_tables_in_the_publication_are_passed_over(server: Server) -> None:
    with server.connect() as open:
        open.execute("CREATE TABLE other (id INT PRIMARY KEY)")
        made = cdc(server, debezium_publication_autocreate_mode="all_tables", sequence=True)
        _, at = step(made, None)
        for n in range(5):
            open.execute(f"INSERT INTO other VALUES ({n})")
        assert made.is_empty(at, made.next_offset(at, NO_LIMIT))
        open.execute("BEGIN; INSERT INTO other VALUES (7); INSERT INTO t VALUES (1, 'a'); COMMIT")
        seen: list[Row] = []
        while not seen:
            seen, at = step(made, at, ReadLimit(rows=2))  # each time some of what is there
        assert seen == [("+I", 1, "a")]
        assert at["count"] == 1
        open.execute("TRUNCATE other")
        assert step(made, at)[0] == []


def test_where_a_job_may_begin(server: Server) -> None:
    with server.connect() as open:
        open.execute("INSERT INTO t VALUES (1, 'before')")
        latest = cdc(server, scan_startup_mode="latest-offset")
        begun = latest.next_offset(None, NO_LIMIT)
        assert latest.is_empty(None, begun)
        open.execute("INSERT INTO t VALUES (2, 'after')")
        end = latest.next_offset(None, NO_LIMIT)
        assert rows(latest, None, end) == [("+I", 2, "after")]
        again = cdc(server, scan_startup_mode="latest-offset")
        assert again.is_readable(None, end)
        assert rows(again, None, end) == [("+I", 2, "after")]  # a plan of another process
        committed = cdc(server, scan_startup_mode="committed-offset")
        assert step(committed, None)[0] == [("+I", 2, "after")]
        once = cdc(server, scan_startup_mode="snapshot", slot_name="none")
        seen, end = step(once, None)
        assert sorted(seen) == [("+I", 1, "before"), ("+I", 2, "after")]
        assert once.is_bounded
        assert once.is_finished(end)
        with pytest.raises(ConnectorError, match="slot 'none' does not exist"):
            cdc(server, scan_startup_mode="committed-offset", slot_name="none").next_offset(None, NO_LIMIT)
        snapshot = cdc(server).next_offset(None, NO_LIMIT)
        assert not cdc(server).is_readable(None, snapshot)
        assert latest.is_readable(snapshot, end)


def test_parts_of_a_snapshot_have_all_rows_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.connectors.postgres_cdc.source._LEAST_BLOCKS", 5)
    with server.connect() as open:
        open.execute("INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 3000) g")
        made = cdc(server, fields=("id",))
        made.parallelism = 4
        end = made.next_offset(None, NO_LIMIT)
        open.execute("UPDATE t SET name = 'moved'")
        assert len(parts(made, None, end)) == 4
        assert sorted(rows(made, None, end)) == [("+I", n) for n in range(1, 3001)]
        made.server.release()


def test_metadata(server: Server) -> None:
    columns = {"id": t.INT}
    keys = ("database_name", "schema_name", "table_name", "op_ts")
    metadata = {key: t.LocalZonedTimestampType(precision=3) if key == "op_ts" else t.STRING for key in keys}
    declared = table(columns, cdc_options(server), metadata=metadata)
    made = source(declared, streaming=True, metadata={key: key for key in keys})
    assert isinstance(made, CdcSource)
    with server.connect() as open:
        open.execute("INSERT INTO t VALUES (1, 'a')")
        seen, at = step(made, None)
        assert seen == [("+I", 1, "postgres", "public", "t", datetime(1970, 1, 1, tzinfo=UTC))]
        open.execute("INSERT INTO t VALUES (2, 'a')")
        (now,) = open.execute("SELECT now()").fetchone() or ()
        ((*row, moment),), _ = step(made, at)
    assert row == ["+I", 2, "postgres", "public", "t"]
    assert abs((moment - now).total_seconds()) < 60


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


def test_names_of_any_kind(server: Server) -> None:
    name, column = """a "b" %s :c 'd' \\ é""", """%d "x" :y 'z'; --"""
    quoted, inner = (f'"{n.replace(chr(34), chr(34) * 2)}"' for n in (name, column))
    with server.connect() as open:
        open.execute(f"CREATE TABLE {quoted} ({inner} TEXT)".encode())
        open.execute(
            f"ALTER TABLE {quoted} REPLICA IDENTITY FULL; INSERT INTO {quoted} VALUES ('a')".encode()
        )
        made = cdc(server, {column: t.STRING}, key=(), table__name=name, debezium_publication_name=column)
        seen, at = step(made, None)
        assert seen == [("+I", "a")]
        open.execute(f"INSERT INTO {quoted} VALUES ('b')".encode())
        assert step(made, at)[0] == [("+I", "b")]
