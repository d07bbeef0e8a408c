"""Values of PostgreSQL: the same in a snapshot and in changes."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from tests.connectors.postgres import Server
from tests.connectors.postgres_cdc import cdc_options
from tests.connectors.postgres_cdc.sources import cdc, step
from tests.connectors.sources import source, table
from tidemill.connectors.postgres_cdc.source import CdcSource
from tidemill.connectors.worker_errors import WorkerError
from tidemill.types import logical as t

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
