"""Files that Spark's readers would read otherwise than our decoders, or not at all: each has its answer."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import DataFrame, SparkSession

from tests.connectors import sources
from tests.connectors.native import batch_session, both, failing, files, is_native, shown, written
from tidemill.connectors.api import ReadLimit
from tidemill.connectors.filesystem.source import FileSource
from tidemill.connectors.formats.columnar.parquet_footer import stored_columns
from tidemill.files.entries import FileList
from tidemill.runtime.spark.failures import translated
from tidemill.types import logical as t


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return batch_session(spark)


def test_times_of_twelve_bytes_that_spark_would_shift(session: SparkSession, tmp_path: Path) -> None:
    """In files of its own before 3.1."""
    moment = pa.array([-14_830_974_000_000_000], pa.int64()).cast(pa.timestamp("us"))
    for version in ("3.0.1", "3.1.0"):
        data = pa.table({"n": moment})
        with pq.ParquetWriter(
            tmp_path / version, data.schema, use_deprecated_int96_timestamps=True, store_schema=False
        ) as writer:
            writer.write_table(data)
            writer.add_key_value_metadata(
                {"org.apache.spark.version": version, "org.apache.spark.timeZone": "America/Los_Angeles"}
            )
    declared = files({"n": t.TimestampType(precision=6)}, tmp_path)
    assert shown(both(session, declared)[0].read_all(session)) == ["(-14830974000000000,)"] * 2


def test_a_double_that_is_no_float(session: SparkSession, tmp_path: Path) -> None:
    declared = files({"c": t.FloatType()}, tmp_path)
    values = [2.5, math.inf, None, math.nan, -0.0]
    pq.write_table(pa.table({"c": pa.array(values, pa.float64())}), tmp_path / "a.parquet")
    assert repr(both(session, declared)[0].read_all(session).toArrow()["c"].to_pylist()) == repr(values)
    pq.write_table(pa.table({"c": pa.array([-1e300])}), tmp_path / "b.parquet")
    said = failing(both(session, declared)[0].read_all(session).collect)
    assert (
        said
        == f"Column 'c' holds double, which does not fit FLOAT: -1e+300 is too large ({tmp_path}/b.parquet)"
    )


def test_a_millisecond_that_has_no_microseconds(session: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": pa.array([2**63 - 1]).cast(pa.timestamp("ms"))}), tmp_path / "f.parquet")
    declared = files({"n": t.TimestampType(precision=3)}, tmp_path)
    for read in both(session, declared):
        with pytest.raises(Exception, match=r"out of bounds timestamp|long overflow"):
            read.read_all(session).collect()


def test_orc_columns_that_spark_does_not_find(session: SparkSession, tmp_path: Path) -> None:
    orc.write_table(pa.table({"a`b": [1, 2], "v": [3, 4]}), tmp_path / "f.orc")
    declared = files({"a`b": t.BIGINT, "v": t.BIGINT}, tmp_path, "orc")
    assert both(session, declared)[0].read_all(session).collect() == [(1, 3), (2, 4)]


NOON = dt.datetime(2024, 5, 1, 12)
TIMES: dict[str, tuple[t.LogicalType, pa.DataType, Any]] = {
    "wall": (t.TimestampType(precision=3), pa.timestamp("us"), NOON),
    "instant": (t.LocalZonedTimestampType(precision=3), pa.timestamp("us", "UTC"), NOON),
    "list": (t.ArrayType(element=t.TimestampType(precision=3)), pa.list_(pa.timestamp("us")), [NOON]),
    "row": (
        t.RowType(fields=(t.Field("x", t.TimestampType(precision=3)),)),
        pa.struct([("x", pa.timestamp("us"))]),
        {"x": NOON},
    ),
}


@pytest.mark.one_case
@pytest.mark.parametrize("other", TIMES)
@pytest.mark.parametrize("declared_as", TIMES)
@pytest.mark.parametrize("place", [0, 1])
def test_times_of_orc_files_that_are_not_read(
    session: SparkSession, tmp_path: Path, other: str, declared_as: str, place: int
) -> None:
    """Nor do those of the file that the table has not stand in the way, nor those that the file has not."""
    _, stored, value = TIMES[other]
    data = {"other": pa.array([value, None], stored), "id": pa.array([1, 2], pa.int64())}
    names = ["id", "other"] if place else ["other", "id"]
    orc.write_table(pa.table({name: data[name] for name in names}), tmp_path / "f.orc")
    kind = TIMES[declared_as][0]
    columns = [("id", t.BIGINT), ("absent", kind)] if place else [("absent", kind), ("id", t.BIGINT)]
    if declared_as == other:
        columns.insert(place, ("other", kind))
    declared = files(dict(columns), tmp_path, "orc")
    for fields in (("id",), ("absent", "id"), ("absent",), ()):
        native, ours = both(session, declared, fields=fields)
        frame = native.read_all(session)
        assert is_native(frame)
        assert frame.count() == 2
        if fields:
            assert shown(frame) == shown(ours.read_all(session))


def test_what_is_no_time_of_day(session: SparkSession, tmp_path: Path) -> None:
    for number, value in enumerate((-1, 86_400_000)):
        folder = tmp_path / str(number)
        folder.mkdir()
        pq.write_table(pa.table({"c": pa.array([0, None, value], pa.int32())}), folder / "f.parquet")
        declared = files({"c": t.TimeType()}, folder)
        native, ours = both(session, declared)
        frame = native.read_all(session)
        assert is_native(frame)
        said = []
        for read in (frame, ours.read_all(session)):
            with pytest.raises(Exception, match=f"{value} ms are no time of day") as raised:
                read.collect()
            said.append(str(translated(raised.value)))
        assert "column 'c'" in said[1].lower()


def test_decimals_that_only_we_read(session: SparkSession, tmp_path: Path) -> None:
    """More digits than a DECIMAL has leave the other columns to Spark."""
    wide = pa.array([Decimal(1), None], pa.decimal256(40, 2))
    pq.write_table(pa.table({"wide": wide, "c": pa.array([1, 2], pa.int64())}), tmp_path / "f.parquet")
    found = stored_columns(pq.ParquetFile(tmp_path / "f.parquet"))
    assert found is not None
    assert found["wide"] is None
    declared = files({"wide": t.DecimalType(precision=5, scale=2), "c": t.BIGINT}, tmp_path)
    other = sources.source(declared, fields=("c",)).read_all(session)
    assert is_native(other)
    assert other.collect() == [(1,), (2,)]
    native, ours = both(session, declared)
    assert shown(native.read_all(session)) == shown(ours.read_all(session))


@pytest.mark.parametrize("stored", ["binary", "fixed_len_byte_array(20)"])
def test_bytes_of_decimals_that_spark_does_not_read(
    session: SparkSession, tmp_path: Path, stored: str
) -> None:
    """Of any length it fails, of more than sixteen it gives another number."""
    jvm: Any = session._jvm
    parquet = jvm.org.apache.parquet
    kind = parquet.schema.MessageTypeParser.parseMessageType(
        f"message m {{ required {stored} c (DECIMAL(15,2)); }}"
    )
    path = jvm.org.apache.hadoop.fs.Path(f"file:{tmp_path}/f.parquet")
    writer = parquet.hadoop.example.ExampleParquetWriter.builder(path).withType(kind).build()
    digits = (999_999_999_999_999).to_bytes(9 if stored == "binary" else 20, "big")
    row = parquet.example.data.simple.SimpleGroupFactory(kind).newGroup()
    row.add("c", parquet.io.api.Binary.fromConstantByteArray(bytearray(digits)))
    writer.write(row)
    writer.close()
    declared = files({"c": t.DecimalType(precision=15, scale=2)}, tmp_path)
    native, _ = both(session, declared)
    read = native.read_all(session)
    assert not is_native(read)
    if stored == "binary":
        assert read.collect() == [(Decimal("9999999999999.99"),)]
    else:
        assert "Length of byte array passed to Decimal128" in failing(read.collect)


def test_files_that_only_we_can_read_are_read_beside_the_others(
    session: SparkSession, tmp_path: Path
) -> None:
    """By file: another type, another codec, another calendar, columns of a name, an unlisted name."""
    plain = pa.table({"c": pa.array([1, 2], pa.int64())})
    written([plain, pa.table({"c": pa.array([3], pa.decimal128(3, 0))})], tmp_path)
    pq.write_table(plain, tmp_path / "brotli.parquet", compression="brotli")
    old = plain.replace_schema_metadata({"org.apache.spark.version": "2.4.8"})
    pq.write_table(old, tmp_path / "old.parquet")
    pq.write_table(
        plain, tmp_path / "split.parquet", column_encoding={"c": "BYTE_STREAM_SPLIT"}, use_dictionary=False
    )
    pq.write_table(plain, tmp_path / "x._COPYING_")
    declared = files({"c": t.BIGINT}, tmp_path)
    native, ours = both(session, declared)
    scan = native.native
    assert scan is not None
    tables, left = scan.tables(session, native.entries(), 1)
    assert len(tables) == 1
    names = sorted(f.path for f in left)
    assert names == ["1.parquet", "brotli.parquet", "old.parquet", "split.parquet", "x._COPYING_"]
    assert shown(native.read_all(session)) == shown(ours.read_all(session))


@pytest.mark.parametrize("name", ["_f", ".f", "f._COPYING_", "a:f", "_metadata", "_a=1.parquet", "f"])
def test_a_table_of_one_file_whatever_it_is_called(session: SparkSession, tmp_path: Path, name: str) -> None:
    """Spark's lists leave out what such names are for."""
    pq.write_table(pa.table({"c": pa.array([1, 2], pa.int64())}), tmp_path / name)
    declared = files({"c": t.BIGINT}, tmp_path / name)
    read = both(session, declared)[0].read_all(session)
    assert is_native(read) == (name in ("_a=1.parquet", "f"))
    assert read.collect() == [(1,), (2,)]


def test_a_file_without_columns_or_with_two_of_a_name(session: SparkSession, tmp_path: Path) -> None:
    for name, columns in (("none", []), ("two", ["c", "c", "d"])):
        (tmp_path / name).mkdir()
        values = [pa.array([n], pa.int64()) for n, _ in enumerate(columns)]
        pq.write_table(pa.Table.from_arrays(values, names=columns), tmp_path / name / "f")

    def read(name: str, fields: tuple[str, ...]) -> DataFrame:
        declared = files({"c": t.BIGINT, "d": t.BIGINT}, tmp_path / name)
        return sources.source(declared, fields=fields).read_all(session)

    assert not is_native(read("none", ("c",)))
    assert read("none", ("c",)).collect() == []
    assert read("two", ("d",)).collect() == [(2,)]
    assert failing(read("two", ("c",)).collect) == f"There are 2 columns 'c' ({tmp_path}/two/f)"


def test_partitions(session: SparkSession, tmp_path: Path) -> None:
    """Names that Hive escapes, the default partition, a nested folder, and a name that Spark would take for
    another type's."""
    rows = {
        "p=a%3Ab/d=2020-02-29": 1, "p=__DEFAULT_PARTITION__/d=1969-12-31": 2,
        "p=__HIVE_DEFAULT_PARTITION__/d=0001-01-01": 3,
        "p=01/d=9999-12-31": 4, "p=%20é/d=2020-02-29/deeper": 5, "p=01/d=__DEFAULT_PARTITION__": 6,
    }  # fmt: skip
    for folder, value in rows.items():
        (tmp_path / folder).mkdir(parents=True)
        pq.write_table(pa.table({"v": [value]}), tmp_path / folder / "f.parquet")
    declared = files({"v": t.BIGINT, "p": t.STRING, "d": t.DATE}, tmp_path, partitioned_by=("p", "d"))
    for fields in (("v", "p", "d"), ("p", "v"), ("d",), ("v",)):
        native, ours = both(session, declared, fields=fields)
        frame = native.read_all(session)
        assert is_native(frame)
        assert shown(frame) == shown(ours.read_all(session)), fields
    native, _ = both(session, declared)
    assert native.read_all(session).where("p = '01' AND d IS NULL").select("v").collect() == [(6,)]


@pytest.mark.parametrize(("name", "write"), [("parquet", pq.write_table), ("orc", orc.write_table)])
def test_rows_of_which_only_partitions_are_asked_for(
    name: str, write: Callable[[pa.Table, Path], None], tmp_path: Path
) -> None:
    (tmp_path / "p=x").mkdir()
    write(pa.table({"v": [1, 2]}), tmp_path / "p=x" / "f")
    declared = files({"v": t.BIGINT, "p": t.STRING}, tmp_path, name, partitioned_by=("p",))
    read = sources.source(declared, fields=("p",))
    assert isinstance(read, FileSource)
    tasks = read.tasks(None, read.next_offset(None, ReadLimit()))
    batches = [batch for task in tasks for batch in read.reader.read(task.splits, task.before)]
    assert [row for batch in batches for row in batch.to_pylist()] == [{"p": "x"}] * 2


def test_files_that_are_damaged_or_gone(session: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"v": list(range(50_000))})
    for name in ("gone", "damaged"):
        (tmp_path / name).mkdir()
        pq.write_table(rows, tmp_path / name / "f.parquet", compression="none", use_dictionary=False)

    def table(name: str) -> Any:
        return files({"v": t.BIGINT}, tmp_path / name)

    gone, damaged = (both(session, table(n))[0] for n in ("gone", "damaged"))
    pq.write_table(rows, tmp_path / "gone" / "g.parquet")
    scan = gone.native
    assert scan is not None
    entries = gone.entries()
    frame = gone.read_all(session)
    (tmp_path / "gone" / "f.parquet").unlink()
    shown_path = f"File {tmp_path}/gone/f.parquet no longer exists, but not all of it was read."
    assert failing(frame.collect) == shown_path
    [known], _ = scan.tables(session, entries, 1)
    assert failing(session.table(f"`{known.name}`").collect) == shown_path
    assert failing(lambda: scan.tables(session, FileList(entries[:1]), 1)) == shown_path
    frame = damaged.read_all(session)
    data = bytearray((tmp_path / "damaged" / "f.parquet").read_bytes())
    data[4:40] = b"\xff" * 36
    (tmp_path / "damaged" / "f.parquet").write_bytes(data)
    assert failing(frame.collect).startswith(f"Cannot read file {tmp_path}/damaged/f.parquet: ")
    (tmp_path / "damaged" / "f.parquet").write_bytes(b"PAR1")
    assert failing(lambda: damaged.read_all(session)).startswith(
        f"Cannot read file {tmp_path}/damaged/f.parquet: "
    )
