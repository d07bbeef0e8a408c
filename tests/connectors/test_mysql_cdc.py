"""mysql-cdc against a real server, without Spark: what is planned, what is read, and what is refused."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.connectors.mariadb import Server, cdc_options
from tests.connectors.sources import source, table
from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN, RowKind
from tidemill.connectors.api import Offset, ReadLimit
from tidemill.connectors.mysql_cdc.offsets import from_json
from tidemill.connectors.mysql_cdc.source import CdcSource
from tidemill.connectors.registry import validate
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError, NotSupportedError, TidemillError, ValidationError
from tidemill.types import logical as t

COLUMNS: Mapping[str, t.LogicalType] = {"id": t.INT, "name": t.STRING}
Row = tuple[Any, ...]
NO_LIMIT = ReadLimit()
_made: list[CdcSource] = []


@pytest.fixture
def server(mariadb: Server) -> Iterator[Server]:
    """An empty database; snapshots that are held are released."""
    mariadb.clear()
    mariadb.ask("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(50))")
    yield mariadb
    while _made:
        _made.pop().close()


def cdc(
    server: Server, columns: Mapping[str, t.LogicalType] = COLUMNS, *, sequence: bool = False, **more: str
) -> CdcSource:
    declared = table(columns, cdc_options(server, **more), primary_key=("id",))
    made = source(declared, streaming=True, sequence=sequence)
    assert isinstance(made, CdcSource)
    _made.append(made)
    return made


def rows(made: CdcSource, start: Offset | None, end: Offset) -> list[Row]:
    """Kind and values."""
    found: list[Row] = []
    for part in made.parts(start, from_json(end)):
        for batch in made.reader.read(part):
            kinds = batch.column(KIND_COLUMN).to_pylist()
            values = zip(*(batch.column(f.name).to_pylist() for f in made.reader.fields), strict=True)
            found += [(RowKind(k).short, *v) for k, v in zip(kinds, values, strict=True)]
    return found


def step(made: CdcSource, start: Offset | None, limit: ReadLimit = NO_LIMIT) -> tuple[list[Row], Offset]:
    """An epoch."""
    end = made.next_offset(start, limit)
    return ([] if made.is_empty(start, end) else rows(made, start, end)), end


def test_a_snapshot_and_then_changes(server: Server) -> None:
    server.ask("INSERT INTO t VALUES (1, 'a'), (2, NULL)")
    made = cdc(server)
    seen, at = step(made, None)
    assert sorted(seen) == [("+I", 1, "a"), ("+I", 2, None)]
    server.ask(
        "UPDATE t SET name = 'b' WHERE id = 1", "DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (3, '')"
    )
    seen, after = step(made, at)
    assert seen == [("-U", 1, "a"), ("+U", 1, "b"), ("-D", 2, None), ("+I", 3, "")]
    assert rows(made, at, after) == seen  # as often as asked
    assert rows(cdc(server), at, after) == seen  # and by another process
    assert step(made, after) == ([], after)


def test_random_changes_cuts_and_restarts_end_as_the_table(server: Server) -> None:
    """The twin is the table itself: what is read, applied strictly, is what the server has, and at each end
    of an epoch no transaction is half there (all rows have the same stamp)."""
    rng = random.Random(7)
    server.ask("CREATE TABLE other (id INT)", "INSERT INTO t VALUES (0, '0')")
    made, at = cdc(server), None
    kept: dict[int, str] = {}
    for turn in range(1, 25):
        for _ in range(rng.randrange(3)):
            change(server, rng, turn)
        if rng.random() < 0.1:
            server.ask("FLUSH BINARY LOGS")
        if rng.random() < 0.3 and at is not None:
            made.close()
            made = cdc(server)
        at = apply(made, at, kept, ReadLimit(rows=rng.randrange(1, 6)))
    while (after := apply(made, at, kept, NO_LIMIT)) != at:
        at = after
    assert kept == dict(server.ask("SELECT id, name FROM t"))
    assert len(set(kept.values())) == 1


def purge(server: Server) -> None:
    """All of the log but a new file. The server keeps a file that somebody is reading."""
    server.ask("FLUSH BINARY LOGS")
    ((last, *_),) = server.ask("SHOW MASTER STATUS")
    while len(server.ask("SHOW BINARY LOGS")) > 1:
        server.ask(f"PURGE BINARY LOGS TO '{last}'")
        time.sleep(0.05)


def change(server: Server, rng: random.Random, turn: int) -> None:
    """A transaction that leaves all rows with a new stamp; some are rolled back."""
    stamp = f"{turn}-{rng.random()}"
    statements = [
        "BEGIN",
        f"INSERT IGNORE INTO t VALUES ({rng.randrange(1, 9)}, 'x')",
        "INSERT INTO other VALUES (1)",
    ]
    statements += ["SAVEPOINT s", "DELETE FROM t WHERE id > 0", "ROLLBACK TO s"] if rng.random() < 0.3 else []
    statements += [f"DELETE FROM t WHERE id = {rng.randrange(1, 9)}", f"UPDATE t SET name = '{stamp}'"]
    server.ask(*statements, "ROLLBACK" if rng.random() < 0.2 else "COMMIT")


def apply(made: CdcSource, at: Offset | None, kept: dict[int, str], limit: ReadLimit) -> Offset:
    seen, after = step(made, at, limit)
    for kind, key, value in seen:
        if kind in ("-U", "-D"):
            assert kept.pop(key) == value
        else:
            assert key not in kept
            kept[key] = value
    assert len(set(kept.values())) <= 1
    return after


@pytest.mark.thorough
def test_a_snapshot_among_writers_is_exact(server: Server) -> None:
    """Writers go on all the time; each snapshot and what follows is the table."""
    done = threading.Event()

    def write(number: int) -> None:
        with server.connect() as open, open.cursor() as cursor:
            turn = 0
            while not done.wait(0.01):
                turn += 1
                cursor.execute("BEGIN")
                cursor.execute(f"REPLACE INTO t VALUES ({number * 100 + turn % 50}, '{turn}')")
                cursor.execute(f"DELETE FROM t WHERE id = {number * 100 + (turn * 7) % 50}")
                cursor.execute("COMMIT")

    writers = [threading.Thread(target=write, args=(n,)) for n in (1, 2)]
    for writer in writers:
        writer.start()
    copies = []
    try:
        for _ in range(5):
            made = cdc(server)
            kept: dict[int, str] = {}
            copies.append((made, strict(made, None, kept), kept))
            time.sleep(0.05)
    finally:
        done.set()
        for writer in writers:
            writer.join()
    for made, at, kept in copies:
        strict(made, at, kept)
        assert kept == dict(server.ask("SELECT id, name FROM t"))
        made.close()


def strict(made: CdcSource, at: Offset | None, kept: dict[int, str]) -> Offset:
    seen, after = step(made, at)
    for kind, key, value in seen:
        if kind in ("-U", "-D"):
            assert kept.pop(key) == value
        else:
            assert key not in kept
            kept[key] = value
    return after


BYTES = t.VarBinaryType(length=2147483647)
TYPES: list[tuple[str, t.LogicalType, str, object]] = [
    ("tinyint(1)", t.BOOLEAN, "1", True),
    ("bit(1)", t.BOOLEAN, "b'1'", True),
    ("tinyint", t.TinyIntType(), "-128", -128),
    ("tinyint unsigned", t.SmallIntType(), "255", 255),
    ("smallint unsigned", t.INT, "65535", 65535),
    ("mediumint", t.INT, "-8388608", -8388608),
    ("mediumint unsigned", t.INT, "16777215", 16777215),
    ("int unsigned", t.BIGINT, "4294967295", 4294967295),
    ("bigint", t.BIGINT, "-9223372036854775808", -9223372036854775808),
    (
        "bigint unsigned",
        t.DecimalType(precision=20, scale=0),
        "18446744073709551615",
        Decimal(18446744073709551615),
    ),
    ("float", t.FloatType(), "0.1", pytest.approx(0.1)),
    ("float", t.DOUBLE, "16777217.5", 16777218.0),
    ("double", t.DOUBLE, "0.1", 0.1),
    ("decimal(12,2)", t.DecimalType(precision=12, scale=2), "-1234567890.05", Decimal("-1234567890.05")),
    ("decimal(30,10)", t.DecimalType(precision=30, scale=10), "0.0000000001", Decimal("0.0000000001")),
    ("date", t.DateType(), "'2024-02-29'", date(2024, 2, 29)),
    ("time(3)", t.TimeType(precision=3), "'23:59:59.987'", 86399987),
    ("datetime", t.TimestampType(precision=0), "'1969-12-31 23:59:59'", datetime(1969, 12, 31, 23, 59, 59)),
    ("datetime(6)", t.TimestampType(precision=6), "'9999-12-31 23:59:59.999999'", datetime.max),
    (
        "datetime",
        t.LocalZonedTimestampType(precision=3),
        "'2024-07-01 12:00:00'",
        datetime(2024, 7, 1, 10, tzinfo=UTC),
    ),
    (
        "timestamp(3)",
        t.TimestampType(precision=3),
        "'2024-07-01 12:00:00.5'",
        datetime(2024, 7, 1, 14, 0, 0, 500000),
    ),
    (
        "timestamp",
        t.LocalZonedTimestampType(precision=3),
        "'2024-07-01 12:00:00'",
        datetime(2024, 7, 1, 12, tzinfo=UTC),
    ),
    ("year", t.INT, "2155", 2155),
    ("varchar(300)", t.STRING, "'é\U0001f600 \\\\ \"x\"'", 'é\U0001f600 \\ "x"'),
    ("varchar(20) character set latin1", t.STRING, "'é€'", "é€"),
    ("char(200)", t.STRING, "'ab '", "ab"),
    ("text", t.STRING, "''", ""),
    ("json", t.STRING, "'{\"a\": [1, 2.50]}'", '{"a": [1, 2.50]}'),
    ("enum('a','it''s')", t.STRING, "'it''s'", "it's"),
    ("set('x','y','z')", t.STRING, "'z,x'", "x,z"),
    ("set('x','y')", t.STRING, "''", ""),
    ("bit(12)", BYTES, "b'100000001111'", b"\x0f\x08"),
    ("binary(4)", BYTES, "x'00ff'", b"\x00\xff\x00\x00"),
    ("varbinary(10)", BYTES, "x'00ff5c00'", b"\x00\xff\x5c\x00"),
    ("blob", BYTES, "x''", b""),
]


def test_values_are_the_same_in_snapshot_and_changes(server: Server) -> None:
    names = [f"c{n}" for n in range(len(TYPES))]
    columns = ", ".join(f"{name} {kind} NULL" for name, (kind, *_) in zip(names, TYPES, strict=True))
    server.ask(f"CREATE TABLE kinds (id INT PRIMARY KEY, {columns})")
    filled = f"INSERT INTO kinds VALUES (%d, {', '.join(text for _, _, text, _ in TYPES)})"
    utc = "SET time_zone = '+00:00'"
    server.ask(utc, filled % 1, "INSERT INTO kinds (id) VALUES (2)")
    declared = {"id": t.INT, **{name: kind for name, (_, kind, *_) in zip(names, TYPES, strict=True)}}
    made = cdc(server, declared, table__name="kinds", server__time__zone="Europe/Berlin")
    seen, at = step(made, None)
    server.ask(utc, filled % 3, "INSERT INTO kinds (id) VALUES (4)", "DELETE FROM kinds WHERE id < 3")
    later, _ = step(made, at)
    expected = [value for *_, value in TYPES]
    nothing = [None for _ in TYPES]
    assert [list(row) for row in seen] == [["+I", 1, *expected], ["+I", 2, *nothing]]
    assert [list(row) for row in later[:2]] == [["+I", 3, *expected], ["+I", 4, *nothing]]
    assert [row[1:] for row in later[2:]] == [row[1:] for row in seen]


@pytest.mark.parametrize(
    ("kind", "declared", "text"),
    [
        ("date", t.DateType(), "0000-00-00"),
        ("time", t.TimeType(precision=0), "-00:00:01"),
        ("time", t.TimeType(precision=0), "24:00:00"),
        ("int unsigned", t.INT, "4294967295"),
    ],
)
def test_a_value_that_the_declared_type_cannot_hold_is_an_error(
    server: Server, kind: str, declared: t.LogicalType, text: str
) -> None:
    server.ask(f"CREATE TABLE k (id INT PRIMARY KEY, c {kind})")
    insert = ("SET sql_mode = ''", f"INSERT INTO k VALUES (1, '{text}')")
    made = cdc(server, {"id": t.INT, "c": declared}, table__name="k")
    if kind != "int unsigned":
        _, at = step(made, None)
        server.ask(*insert)
        with pytest.raises(WorkerError, match="column 'c'"):
            step(made, at)
        with pytest.raises(ConnectorError, match="column 'c'"):
            step(cdc(server, {"id": t.INT, "c": declared}, table__name="k"), None)
        return
    server.ask(*insert)
    with pytest.raises(ConnectorError, match="'4294967295' is no INT"):
        step(made, None)


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["ALTER TABLE t ADD COLUMN more INT"], "column 'more' was added since"),
        (["ALTER TABLE t DROP COLUMN name"], "column 'name'"),
        (["ALTER TABLE t MODIFY name TEXT"], r"column 'name'"),
        (["ALTER TABLE t RENAME COLUMN name TO title"], "column 'name'"),
        (
            ["INSERT INTO t VALUES (5, 'x')", "ALTER TABLE t ADD z INT", "ALTER TABLE t DROP z"],
            "ALTER TABLE t ADD z",
        ),
        (["TRUNCATE t"], "TRUNCATE t"),
        (["DROP TABLE t"], "does not exist"),
        (["RENAME TABLE t TO u", "CREATE TABLE t LIKE u"], "RENAME TABLE"),
        (["SET binlog_format = 'STATEMENT'", "INSERT INTO t VALUES (5, 'x')"], "statement instead of rows"),
        (["SET binlog_row_image = 'MINIMAL'", "UPDATE t SET name = 'y' WHERE id = 1"], "binlog_row_image"),
        (
            [
                "XA START 'x'",
                "INSERT INTO t VALUES (6, 'x')",
                "XA END 'x'",
                "XA PREPARE 'x'",
                "XA COMMIT 'x'",
            ],
            "XA",
        ),
        (
            ["FLUSH BINARY LOGS", "FLUSH BINARY LOGS", "PURGE"],
            r"changes since log\.\d+:\d+ are purged: the log goes",
        ),
    ],
)
def test_what_would_lose_changes_is_told(server: Server, statements: list[str], said: str) -> None:
    server.ask("INSERT INTO t VALUES (1, 'a')")
    _, at = step(made := cdc(server), None)
    made.close()
    if statements[-1] == "PURGE":
        purge(server)
    else:
        server.ask(*statements)
    with pytest.raises(TidemillError, match=said):
        step(cdc(server), at)


def test_a_purge_between_plan_and_read_is_an_error(server: Server) -> None:
    _, at = step(made := cdc(server), None)
    server.ask("INSERT INTO t VALUES (1, 'a')")
    end = made.next_offset(at, NO_LIMIT)
    purge(server)
    with pytest.raises(WorkerError, match=r"the log cannot be read from log\."):
        rows(made, at, end)


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("binlog_format", "STATEMENT", "SET GLOBAL binlog_format = 'ROW'"),
        ("binlog_row_image", "MINIMAL", "SET GLOBAL binlog_row_image = 'FULL'"),
        ("log_bin_compress", "1", "SET GLOBAL log_bin_compress = OFF"),
    ],
)
def test_settings_of_the_server_that_are_refused(server: Server, setting: str, value: str, said: str) -> None:
    ((before,),) = server.ask(f"SELECT @@GLOBAL.{setting}")
    server.ask(f"SET GLOBAL {setting} = '{value}'" if value != "1" else f"SET GLOBAL {setting} = 1")
    try:
        with pytest.raises(ConnectorError, match=said):
            cdc(server).next_offset(None, NO_LIMIT)
    finally:
        server.ask(f"SET GLOBAL {setting} = {before!r}")


def test_tables_that_are_refused(server: Server) -> None:
    server.ask("CREATE VIEW v AS SELECT * FROM t", "CREATE TABLE m (id INT PRIMARY KEY) ENGINE = MyISAM")
    cascade = "FOREIGN KEY (ref) REFERENCES t (id) ON DELETE CASCADE"
    server.ask(f"CREATE TABLE f (id INT PRIMARY KEY, ref INT, {cascade})")
    server.ask("CREATE TABLE n (id INT, name TEXT)")
    for name, said in (
        ("v", "is a VIEW"),
        ("m", "MyISAM"),
        ("f", "CASCADE"),
        ("n", "its primary key is"),
        ("none", "it does not exist"),
    ):
        with pytest.raises(TidemillError, match=said):
            cdc(server, {"id": t.INT}, table__name=name).next_offset(None, NO_LIMIT)
    with pytest.raises(ConnectorError, match="Access denied"):
        cdc(server, password="wrong").next_offset(None, NO_LIMIT)


def test_a_server_that_goes_away_and_comes_back(server: Server) -> None:
    server.ask("INSERT INTO t VALUES (1, 'a')")
    _, at = step(made := cdc(server), None)
    made.next_offset(at, NO_LIMIT)
    server.ask("INSERT INTO t VALUES (2, 'b')")
    server.stop()
    later = threading.Timer(0.5, server.start)
    later.start()
    try:
        end = made.next_offset(at, NO_LIMIT)
    finally:
        later.join()
    assert rows(made, at, end) == [("+I", 2, "b")]


def test_where_a_job_may_begin(server: Server) -> None:
    server.ask("INSERT INTO t VALUES (1, 'before')")
    latest = cdc(server, scan_startup_mode="latest-offset")
    begun = latest.next_offset(None, NO_LIMIT)
    assert latest.is_empty(None, begun)
    server.ask("INSERT INTO t VALUES (2, 'after')")
    assert step(latest, begun)[0] == [("+I", 2, "after")]
    more = {"file": begun["file"], "pos": str(begun["pos"])}
    place = {f"scan_startup_specific__offset_{key}": value for key, value in more.items()}
    specific = cdc(server, scan_startup_mode="specific-offset", **place)
    assert step(specific, None)[0] == [("+I", 2, "after")]
    once = cdc(server, scan_startup_mode="snapshot")
    seen, end = step(once, None)
    assert sorted(seen) == [("+I", 1, "before"), ("+I", 2, "after")]
    assert once.is_finished(end)
    assert not cdc(server).is_readable(None, cdc(server).next_offset(None, NO_LIMIT))
    while _made:
        _made.pop().close()
    server.clear()
    purge(server)
    server.ask("CREATE TABLE t (id INT PRIMARY KEY, name TEXT)", "INSERT INTO t VALUES (1, 'a')")
    server.ask("UPDATE t SET name = 'b'")
    earliest = cdc(server, scan_startup_mode="earliest-offset", sequence=True)
    assert step(earliest, None)[0] == [("+I", 1, "a"), ("-U", 1, "a"), ("+U", 1, "b")]
    assert earliest.reader.schema.endswith(f"`{SEQUENCE_COLUMN}` BIGINT")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"debezium.snapshot.mode": "never"}, r"'debezium.snapshot.mode'"),
        ({"jdbc.properties.useSSL": "false"}, "jdbc.properties"),
        ({"scan.newly-added-table.enabled": "true"}, "newly-added"),
        ({"scan.startup.mode": "timestamp"}, "Unsupported value 'timestamp'"),
        ({"scan.startup.specific-offset.gtid-set": "0-1-1"}, "gtid-set"),
        ({"scan.startup.mode": "specific-offset"}, "belong to"),
        ({"server-id": "x"}, "server-id"),
        ({"server-time-zone": "Nowhere/No"}, "no time zone"),
        ({"hostnam": "x"}, "hostnam"),
    ],
)
def test_options_that_are_refused(more: dict[str, str], said: str) -> None:
    names = ("hostname", "username", "password", "database-name", "table-name")
    declared = table(
        COLUMNS, {"connector": "mysql-cdc", **dict.fromkeys(names, "x"), **more}, primary_key=("id",)
    )
    with pytest.raises((NotSupportedError, ValidationError), match=said):
        validate(declared, declared.options, role="source")


def test_the_primary_key_is_needed(server: Server) -> None:
    declared = table(COLUMNS, cdc_options(server))
    with pytest.raises(ValidationError, match="needs a primary key"):
        validate(declared, declared.options, role="source")
