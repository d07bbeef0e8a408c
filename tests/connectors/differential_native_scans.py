"""What Spark's readers give of hostile files is what our decoders give of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import DataFrame, SparkSession

from tests.connectors import sources
from tests.connectors.native import batch_session, both, files, is_native, shown, written
from tidemill.connectors.formats.columnar.orc_footer import stored_columns as orc_columns
from tidemill.connectors.formats.columnar.parquet_footer import stored_columns
from tidemill.connectors.formats.native import native_column
from tidemill.types import logical as t
from tidemill.types.logical import Field

pytestmark = pytest.mark.thorough

FLOATS = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, None, 5e-324]
TEXTS = ["", "a", "a ", "é", "\uffff", "\U0001f600", "x" * 300, None]
BYTES = [b"", b"\0", b"\xff\xfe", b"x" * 300, None]
DAYS = [-719162, 2932896, -(2**31), 2**31 - 1, 0, -141428, None]
MOMENTS = [-(2**63), 2**63 - 1, 0, -1, -999, 1001, -12219292800000000, None]
MILLIS = [-62135596800000, 253402300799999, 0, -1, None]
CENTS = [Decimal("999.99"), Decimal("-999.99"), Decimal("0.00"), None]
INSTANT = t.LocalZonedTimestampType(precision=6)
ROW = t.RowType(fields=(Field("a", t.INT), Field("b", t.STRING), Field("gone", t.BIGINT)))


def ints(bits: int, *, signed: bool = True) -> list[int | None]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return [low, high, 0, 1, None]


Pair = tuple[t.LogicalType, pa.DataType, Sequence[Any]]
NATIVE: tuple[Pair, ...] = (
    (t.BOOLEAN, pa.bool_(), [True, False, None]),
    (t.TinyIntType(), pa.int8(), ints(8)),
    (t.SmallIntType(), pa.int16(), ints(16)),
    (t.INT, pa.int32(), ints(32)),
    (t.BIGINT, pa.int64(), ints(64)),
    (t.BIGINT, pa.int8(), ints(8)),
    (t.BIGINT, pa.int32(), ints(32)),
    (t.INT, pa.int16(), ints(16)),
    (t.SmallIntType(), pa.uint8(), ints(8, signed=False)),
    (t.INT, pa.uint16(), ints(16, signed=False)),
    (t.BIGINT, pa.uint32(), ints(32, signed=False)),
    (t.BIGINT, pa.uint16(), ints(16, signed=False)),
    (t.FloatType(), pa.float32(), [x if x != 5e-324 else None for x in FLOATS]),
    (t.DOUBLE, pa.float64(), FLOATS),
    (t.DOUBLE, pa.float32(), [x if x != 5e-324 else None for x in FLOATS]),
    (t.STRING, pa.string(), TEXTS),
    (t.VarCharType(length=3), pa.large_string(), TEXTS),
    (t.CharType(length=4), pa.string(), TEXTS),
    (t.BYTES, pa.binary(), BYTES),
    (t.BYTES, pa.binary(2), [b"ab", b"\0\0", None]),
    (t.DATE, pa.date32(), DAYS),
    (t.DecimalType(precision=5, scale=2), pa.decimal128(5, 2), CENTS),
    (t.DecimalType(precision=15, scale=2), pa.decimal128(15, 2), CENTS),
    (t.DecimalType(precision=38, scale=4), pa.decimal128(5, 2), CENTS),
    (t.DecimalType(precision=38, scale=18), pa.decimal128(38, 18), [Decimal("9" * 20 + ".1"), None]),
    (t.TimestampType(precision=6), pa.timestamp("us"), MOMENTS),
    (t.TimestampType(precision=3), pa.timestamp("ms"), MILLIS),
    (t.TimestampType(precision=6), pa.timestamp("us", "Europe/Berlin"), MOMENTS),
    (t.TimestampType(precision=6), pa.timestamp("ns"), MOMENTS),
    (t.TimestampType(precision=6), pa.timestamp("ns", "UTC"), MOMENTS),
    (t.LocalZonedTimestampType(precision=6), pa.timestamp("us", "UTC"), MOMENTS),
    (t.LocalZonedTimestampType(precision=6), pa.timestamp("us"), MOMENTS),
    (t.LocalZonedTimestampType(precision=3), pa.timestamp("ms", "Asia/Tokyo"), MILLIS),
    (t.LocalZonedTimestampType(precision=6), pa.timestamp("ns"), MOMENTS),
    (t.TimeType(), pa.int32(), [0, 86_399_999, None]),
    (t.ArrayType(element=t.STRING), pa.list_(pa.string()), [[], ["a", None], [""], None]),
    (t.ArrayType(element=t.DOUBLE), pa.list_(pa.float64()), [[], [-0.0, math.nan, None], None]),
    (
        t.ArrayType(element=t.ArrayType(element=t.INT)),
        pa.list_(pa.list_(pa.int32())),
        [[], [None, [], [1, None]], None],
    ),
    (
        t.MapType(key=t.STRING, value=t.BIGINT),
        pa.map_(pa.string(), pa.int64()),
        [[], [("a", 1), ("a", 2), ("", None)], None],
    ),
    (t.MultisetType(element=t.STRING), pa.map_(pa.string(), pa.int32()), [[("a", 2)], [], None]),
    (
        ROW,
        pa.struct([("b", pa.string()), ("a", pa.int32()), ("other", pa.bool_())]),
        [{"a": 1, "b": "x", "other": True}, {"a": None, "b": None, "other": None}, None],
    ),
)
OURS: tuple[tuple[t.LogicalType, pa.DataType], ...] = (
    (t.INT, pa.int64()),
    (t.SmallIntType(), pa.uint16()),
    (t.INT, pa.uint32()),
    (t.BIGINT, pa.uint64()),
    (t.DOUBLE, pa.int32()),
    (t.FloatType(), pa.float64()),
    (t.FloatType(), pa.float16()),
    (t.DecimalType(precision=5, scale=2), pa.decimal128(6, 2)),
    (t.DecimalType(precision=5, scale=1), pa.decimal128(5, 2)),
    (t.DecimalType(precision=10, scale=0), pa.int32()),
    (t.STRING, pa.binary()),
    (t.STRING, pa.int32()),
    (t.BYTES, pa.string()),
    (t.DATE, pa.timestamp("us")),
    (t.TimeType(), pa.time32("ms")),
    (t.TimeType(), pa.time64("us")),
    (t.BIGINT, pa.duration("ms")),
    (t.ArrayType(element=t.BIGINT), pa.list_(pa.int32())),
    (t.ArrayType(element=t.TimestampType(precision=6)), pa.list_(pa.timestamp("ns"))),
    (t.MapType(key=t.STRING, value=t.BIGINT), pa.map_(pa.string(), pa.int32())),
    (ROW, pa.struct([("other", pa.int32())])),
)


def column(kind: pa.DataType, values: Sequence[Any], rows: int) -> pa.Array:
    """``values`` again and again; timestamps and dates by their numbers."""
    repeated = [values[i % len(values)] for i in range(rows)]
    if pa.types.is_timestamp(kind):
        return pa.array(repeated, pa.int64()).cast(kind)
    if pa.types.is_date32(kind):
        return pa.array(repeated, pa.int32()).cast(kind)
    return pa.array(repeated, kind)


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return batch_session(spark)


@pytest.mark.parametrize(("kind", "stored"), OURS, ids=str)
def test_what_is_left_to_our_decoders(kind: t.LogicalType, stored: pa.DataType, tmp_path: Path) -> None:
    pq.write_table(pa.table({"c": pa.nulls(1, stored)}), tmp_path / "f.parquet")
    found = stored_columns(pq.ParquetFile(tmp_path / "f.parquet"))
    assert found is not None
    assert native_column(found, Field("c", kind)) is None


@pytest.mark.parametrize(
    "options",
    [
        {"row_group_size": 5},
        {"data_page_version": "2.0", "compression": "zstd", "use_dictionary": False},
        {"version": "1.0", "compression": "none", "store_schema": False},
    ],
    ids=str,
)
def test_all_types_at_once(session: SparkSession, tmp_path: Path, options: dict[str, Any]) -> None:
    """Three files: all columns, every other one, and no rows."""
    pairs = [p for p in NATIVE if options.get("version") != "1.0" or str(p[1]).find("[ns") < 0]
    if not options.get("store_schema", True):
        pairs = [p for p in pairs if p[1] != pa.large_string()]
    data = {f"c{i}": column(stored, values, 23) for i, (_, stored, values) in enumerate(pairs)}
    whole = pa.table(data)
    some = whole.select([n for i, n in enumerate(whole.column_names) if i % 2])
    written([whole, some, whole.slice(0, 0)], tmp_path, **options)
    declared = files({f"c{i}": kind for i, (kind, _, _) in enumerate(pairs)} | {"never": t.STRING}, tmp_path)
    native, ours = both(session, declared)
    frame = native.read_all(session)
    assert is_native(frame)
    assert shown(frame) == shown(ours.read_all(session))
    nothing = sources.source(declared, fields=("never",)).read_all(session)
    assert is_native(nothing)
    assert nothing.count() == 46


def test_timestamps_of_old_writers(session: SparkSession, tmp_path: Path) -> None:
    """Twelve bytes each: a day and the nanoseconds in it; also below a microsecond, before 1970."""
    values = pa.array([0, -1, -999, -1001, 1_700_000_000_123_456_789, -9_000_000_000_000_000_001, None])
    data = pa.table({"n": values.cast(pa.timestamp("ns")), "z": values.cast(pa.timestamp("ns", "UTC"))})
    written([data], tmp_path, use_deprecated_int96_timestamps=True, store_schema=False)
    declared = files(
        {"n": t.TimestampType(precision=6), "z": t.LocalZonedTimestampType(precision=6)}, tmp_path
    )
    native, ours = both(session, declared)
    frame = native.read_all(session)
    assert is_native(frame)
    assert shown(frame) == shown(ours.read_all(session))
    assert "(-1, -1)" in shown(frame)


def test_years_of_old_writers(session: SparkSession, tmp_path: Path) -> None:
    """Nanoseconds in 64 bits end in 2262, and began in 1677."""
    values = [-62135596800000000, 253402300799999999, 9_223_372_036_854_776, -1, None]
    far = pa.array(values, pa.int64()).cast(pa.timestamp("us"))
    for schema in (True, False):
        data = pa.table({"n": far})
        pq.write_table(
            data, tmp_path / f"{schema}.parquet", use_deprecated_int96_timestamps=True, store_schema=schema
        )
    declared = files({"n": t.TimestampType(precision=6)}, tmp_path)
    native, ours = both(session, declared)
    assert is_native(native.read_all(session))
    expected = sorted(repr((value,)) for value in values * 2)
    assert shown(native.read_all(session)) == shown(ours.read_all(session)) == expected


NEW_DAYS = [2932896, 2**31 - 1, 0, -141427, None]
ORC: tuple[Pair, ...] = (
    *(p for p in NATIVE if str(p[1]) in ("bool", "int8", "int16", "int32", "int64", "float", "double")),
    *(p for p in NATIVE if str(p[1]) in ("string", "binary") or pa.types.is_decimal(p[1])),
    (t.DATE, pa.date32(), NEW_DAYS),
)


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "zstd"])
def test_orc(session: SparkSession, tmp_path: Path, compression: str) -> None:
    """All types at once, in three files as of Parquet; where no column is asked for the rows are counted."""
    whole = pa.table({f"c{i}": column(stored, values, 23) for i, (_, stored, values) in enumerate(ORC)})
    some = whole.select([n for i, n in enumerate(whole.column_names) if i % 2])
    for number, table in enumerate((whole, some, whole.slice(0, 0))):
        orc.write_table(table, tmp_path / f"{number}.orc", compression=compression)
    kinds: dict[str, t.LogicalType] = {f"c{i}": kind for i, (kind, _, _) in enumerate(ORC)}
    declared = files({**kinds, "never": t.STRING}, tmp_path, "orc")
    native, ours = both(session, declared)
    frame = native.read_all(session)
    assert is_native(frame)
    assert shown(frame) == shown(ours.read_all(session))
    for fields in (("never",), ()):
        nothing = sources.source(declared, fields=fields).read_all(session)
        assert is_native(nothing)
        assert nothing.count() == 46


ORC_OURS: tuple[Pair, ...] = (
    (t.DATE, pa.date32(), [0, -141428]),
    (t.TimestampType(precision=6), pa.timestamp("us"), [0]),
    (t.LocalZonedTimestampType(precision=6), pa.timestamp("us", "UTC"), [0]),
    (t.ArrayType(element=t.INT), pa.list_(pa.int32()), [[1]]),
    (t.INT, pa.int64(), [1]),
    (t.DecimalType(precision=5, scale=1), pa.decimal128(5, 2), [Decimal("1.25")]),
)


def test_orc_files_that_are_left_to_our_decoders(session: SparkSession, tmp_path: Path) -> None:
    for number, (kind, stored, values) in enumerate(ORC_OURS):
        folder = tmp_path / str(number)
        folder.mkdir()
        orc.write_table(pa.table({"c": column(stored, values, 2)}), folder / "f.orc")
        declared = files({"c": kind}, folder, "orc")
        assert not is_native(both(session, declared)[0].read_all(session)), stored
    positional = tmp_path / "positional.orc"
    orc.write_table(pa.table({"_col0": [1]}), positional)
    with pa.OSFile(str(positional)) as file:
        assert orc_columns(file) is None


def test_conditions_over_orc(session: SparkSession, tmp_path: Path) -> None:
    """A thousand rows of each value, of which statistics could skip most."""
    columns: dict[str, tuple[t.LogicalType, pa.DataType, Sequence[Any]]] = {
        "d": (t.DOUBLE, pa.float64(), [-0.0, 0.0, math.nan, 1.0, None, -2.0]),
        "f": (t.FloatType(), pa.float32(), [-0.0, 0.0, math.nan, None]),
        "s": (t.STRING, pa.string(), ["\uffff", "\U0001f600", "a", "", None, "é", "xx"]),
        "i": (t.INT, pa.int32(), ints(32)),
        "b": (t.BOOLEAN, pa.bool_(), [True, None, False]),
        "m": (t.DecimalType(precision=15, scale=2), pa.decimal128(15, 2),
              [Decimal("9999.99"), Decimal(-1), None]),
        "day": (t.DATE, pa.date32(), NEW_DAYS),
    }  # fmt: skip
    rows = pa.array([i // 1000 for i in range(8000)])
    data = {name: column(stored, values, 8).take(rows) for name, (_, stored, values) in columns.items()}
    orc.write_table(pa.table(data), tmp_path / "f.orc", row_index_stride=1000)
    declared = files({name: kind for name, (kind, _, _) in columns.items()}, tmp_path, "orc")
    native, ours = both(session, declared)
    read, expected = native.read_all(session), ours.read_all(session).cache()
    assert is_native(read)
    over = [c for c in CONDITIONS if c.split()[0] in columns]
    for condition in (*over, "s = '\U0001f600'", "s > '\uffff'", "day < DATE'1600-01-01'"):
        assert counted(read, condition) == counted(expected, condition), condition


def counted(frame: DataFrame, condition: str) -> list[str]:
    return shown(frame.where(condition).groupBy(*frame.columns).count())


CONDITIONS = (
    "d = 0.0D", "d <> 0.0D", "d > -1D", "d <= 0D", "isnan(d)", "NOT (d < 1D)", "f = CAST(0 AS FLOAT)",
    "r.x = 0.0D", "s = 'a'", "s > 'a'", "s LIKE 'x%'", "s IN ('', 'é')", "i > 0", "i = -2147483648",
    "b IS NULL", "m = 9999.99BD", "m > 0BD", "day < DATE'1500-01-01'", "day = DATE'1970-01-01'",
    "ts < TIMESTAMP_NTZ'1600-01-01 00:00:00'", "at >= TIMESTAMP'1970-01-01 00:00:00'",
    "n = TIMESTAMP_NTZ'1970-01-01 00:00:00.000001'", "at = TIMESTAMP'1582-10-10 00:00:00'",
    "at > TIMESTAMP'1582-10-05 00:00:00'", "ms < TIMESTAMP'1970-01-01 00:00:00.000500'",
    "ms <> TIMESTAMP'1970-01-01 00:00:00.000500'", "ms NOT IN (TIMESTAMP'1970-01-01 00:00:00.000500')",
    "ms = TIMESTAMP'1970-01-01 00:00:00'", "r.ms < TIMESTAMP'1970-01-01 00:00:00.000500'",
    *(f"{name} {sign} DATE'1582-10-{number:02}'" for name in ("day", "lost", "r.lost")
      for sign in ("=", "<>", "<", ">=") for number in (4, 5, 10, 14, 15)),
)  # fmt: skip


def test_conditions_that_spark_pushes_into_row_groups(session: SparkSession, tmp_path: Path) -> None:
    """Row groups of two rows, so that most are skipped by their statistics or their dictionaries."""
    columns: dict[str, tuple[t.LogicalType, pa.DataType, Sequence[Any]]] = {
        "d": (t.DOUBLE, pa.float64(), [-0.0, -0.0, 0.0, 0.0, math.nan, math.nan, 1.0, math.nan, None, -2.0]),
        "f": (t.FloatType(), pa.float32(), [-0.0, -0.0, 0.0, 0.0, math.nan, None]),
        "r": (t.RowType(fields=(Field("x", t.DOUBLE), Field("ms", INSTANT), Field("lost", t.DATE))),
              pa.struct([("x", pa.float64()), ("ms", pa.timestamp("ms", "UTC")), ("lost", pa.date32())]),
              [{"x": -0.0, "ms": 0, "lost": -141432}, {"x": -0.0, "ms": 0, "lost": -141432},
               {"x": 0.0, "ms": 1, "lost": -141426}, None]),
        "s": (t.STRING, pa.string(), TEXTS),
        "i": (t.INT, pa.int32(), ints(32)),
        "b": (t.BOOLEAN, pa.bool_(), [True, True, None, None, False]),
        "m": (t.DecimalType(precision=15, scale=2), pa.decimal128(15, 2),
              [Decimal("9999.99"), Decimal(-1), None]),
        "day": (t.DATE, pa.date32(), DAYS),
        "ts": (t.TimestampType(precision=6), pa.timestamp("us"), MOMENTS),
        "at": (INSTANT, pa.timestamp("us", "UTC"), [*MOMENTS, -12219724800000000, -12219724800000000]),
        "ms": (INSTANT, pa.timestamp("ms", "UTC"), [0, 0, 1, 1, None]),
        "lost": (t.DATE, pa.date32(), list(range(-141438, -141416))),
        "n": (t.TimestampType(precision=6), pa.timestamp("ns"), MOMENTS),
    }  # fmt: skip
    data = {name: column(stored, values, 40) for name, (_, stored, values) in columns.items()}
    written([pa.table(data)], tmp_path, row_group_size=2)
    declared = files({name: kind for name, (kind, _, _) in columns.items()}, tmp_path)
    native, ours = both(session, declared)
    read, expected = native.read_all(session), ours.read_all(session).cache()
    assert is_native(read)
    for condition in CONDITIONS:
        assert shown(read.where(condition)) == shown(expected.where(condition)), condition
    assert "GreaterThan(i,0)" in read.where("i > 0")._jdf.queryExecution().executedPlan().toString()
