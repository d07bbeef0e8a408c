"""Input that is damaged in any way gives rows or an error that names the record: never a traceback."""

from __future__ import annotations

import gzip
import random
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession

from tests.connectors.damaged import SAMPLES, damaged
from tests.connectors.formats import decode
from tests.connectors.sources import rows, source, table
from tests.tiers import examples
from tidemill.connectors.api import ReadLimit
from tidemill.connectors.filesystem.source import FileSource
from tidemill.connectors.formats.api import RecordError
from tidemill.connectors.worker_errors import WorkerError, find_error
from tidemill.errors import ConnectorError, TidemillError
from tidemill.types import logical as t

PAIR = {"a": t.INT, "b": t.STRING}
BOM = "\ufeff"


@pytest.mark.one_case
@pytest.mark.parametrize("kind", sorted(SAMPLES))
def test_damaged_text_gives_rows_or_names_the_record(kind: str) -> None:
    draw, sample = random.Random(f"damaged {kind}"), SAMPLES[kind]
    refused: list[tuple[int, bytes, Mapping[str, str]]] = []
    for _ in range(examples(600)):
        options = {} if kind == "raw" or draw.random() < 0.5 else {f"{kind}.ignore-parse-errors": "true"}
        if kind == "csv" and draw.random() < 0.3:
            options["csv.escape-character"] = "\\"
        wanted = tuple(draw.sample(list(sample.columns), draw.randint(1, len(sample.columns))))
        data = damaged(draw, sample.text.encode())
        try:
            decode(kind, sample.columns, data, options, wanted=wanted, metadata=sample.metadata)
        except RecordError as e:
            refused.append((e.line, data, options))
    assert len(refused) > examples(50) or kind == "raw"
    for line, text, given in refused:
        assert f"{kind}.ignore-parse-errors" not in given, text
        assert 0 <= line <= text.count(b"\n"), text


@pytest.mark.parametrize("kind", ["parquet", "orc", "csv.gz"])
def test_damaged_files_are_connector_errors(tmp_path: Path, kind: str) -> None:
    good, draw = tmp_path / f"good.{kind}", random.Random(kind)
    values = pa.table({"a": pa.array(range(99), pa.int32()), "b": [f"v{i}" for i in range(99)]})
    if kind == "parquet":
        pq.write_table(values, good)
    elif kind == "orc":
        orc.write_table(values, good)
    else:
        good.write_bytes(gzip.compress(b"".join(b"%d,v\n" % i for i in range(99))))
    read = source(
        table(
            PAIR,
            {
                "connector": "filesystem",
                "path": str(tmp_path / f"x.{kind}"),
                "format": kind.removesuffix(".gz"),
            },
        )
    )
    assert isinstance(read, FileSource)
    failures: list[str] = []
    for _ in range(300):
        data = bytearray(good.read_bytes())
        at = draw.randrange(len(data))
        if draw.random() < 0.3:
            del data[at:]
        for _ in range(draw.randint(0, 3)):
            data[at : at + 1] = bytes([draw.randrange(256)])
            at = draw.randrange(len(data) + 1)
        (tmp_path / f"x.{kind}").write_bytes(data)
        try:
            read_here(read)
        except (TidemillError, WorkerError) as e:
            failures.append(str(e))
    assert len(failures) > 50
    assert all(f"x.{kind}" in text for text in failures)


def test_a_byte_order_mark_is_one_at_the_start_of_the_file_only(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(f"{BOM}a,1\n{BOM}b,2\n{BOM}c,3\n")
    declared = table({"s": t.STRING, "i": t.INT}, _options(tmp_path, "csv"))
    whole = rows(spark, source(declared))
    assert whole == [("a", 1), (f"{BOM}b", 2), (f"{BOM}c", 3)]
    read, found, start = source(declared), [], None
    while not read.is_finished(start):
        end = read.next_offset(start, ReadLimit(rows=1))
        found += [tuple(r) for r in read.read(spark, start, end).collect()]
        start = end
    assert found == whole


def test_a_quoted_first_field_after_a_byte_order_mark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(f'{BOM}"a\nb",1\nc,2\n')
    read = source(table({"s": t.STRING, "i": t.INT}, _options(tmp_path, "csv")))
    end = read.next_offset(None, ReadLimit(rows=1))
    assert [tuple(r) for r in read.read(spark, None, end).collect()] == [("a\nb", 1)]


@pytest.mark.parametrize("kind", ["json", "debezium-json", "canal-json", "maxwell-json", "ogg-json"])
def test_a_line_of_brackets(kind: str) -> None:
    line = "[" * 100_000
    with pytest.raises(RecordError, match="nested too deeply") as caught:
        decode(kind, PAIR, "\n" + line)
    assert caught.value.line == 1
    assert decode(kind, PAIR, line, {f"{kind}.ignore-parse-errors": "true"}) == []


@pytest.mark.parametrize(
    ("kind", "update"),
    [
        ("maxwell-json", '{"type":"update","data":{"a":1,"b":"x"},"old":{"a":null}}'),
        ("canal-json", '{"type":"UPDATE","data":[{"a":1,"b":"x"}],"old":[{"a":null}]}'),
    ],
)
def test_a_null_of_old_behind_a_byte_order_mark(kind: str, update: str) -> None:
    expected = [("-U", None, "x"), ("+U", 1, "x")]
    assert decode(kind, PAIR, BOM + update) == expected
    assert decode(kind, PAIR, f"{BOM}{update}\n{BOM}{update}\n") == expected * 2
    deep = update[:-1] + ',"more":' + "[" * 5000 + "]" * 5000 + "}"
    with pytest.raises(RecordError, match="nested too deeply"):
        decode(kind, PAIR, deep)
    assert decode(kind, PAIR, f"{deep}\n{update}", {f"{kind}.ignore-parse-errors": "true"}) == expected


def test_bytes_that_are_no_text_are_an_error_or_ignored() -> None:
    data = b"1,x\n2,\xff\n3,y\n"
    for wanted in (("a", "b"), ("a",)):
        with pytest.raises(RecordError, match="Invalid UTF-8") as caught:
            decode("csv", PAIR, data, wanted=wanted)
        assert caught.value.line == 1
    lenient = {"csv.ignore-parse-errors": "true"}
    assert decode("csv", PAIR, data, lenient) == [(1, "x"), (3, "y")]
    assert decode("csv", PAIR, data, lenient, wanted=("a",)) == [(1,), (3,)]


FIRST: list[tuple[str, str, Mapping[str, str]]] = [
    ("csv", "1,2\n2,bad\nbad,3\n\xff,4\n5\n", {}),
    ("json", '{"a":1,"b":2}\n{"a":2,"b":"bad"}\n{"a":"bad","b":3}\n[[[\n', {}),
    (
        "maxwell-json",
        '{"type":"insert","data":{"a":1}}\n{"type":"update","data":{"a":1},"old":null}\n'
        '{"type":"other"}\n{"type":"insert","data":{"a":"bad"}}\n',
        {},
    ),
]


@pytest.mark.parametrize(("kind", "text", "options"), FIRST)
def test_the_first_bad_record_is_the_one_reported(
    tmp_path: Path, kind: str, text: str, options: Mapping[str, str]
) -> None:
    (tmp_path / "x").write_text(text, encoding="latin-1")
    read = source(table({"a": t.INT, "b": t.INT}, {**_options(tmp_path, kind), **options}))
    assert isinstance(read, FileSource)
    with pytest.raises(WorkerError) as caught:
        read_here(read)
    error = find_error(str(caught.value))
    assert isinstance(error, ConnectorError)
    assert error.message.endswith(f"({tmp_path}/x:2)")


def _options(path: Path, kind: str) -> dict[str, str]:
    return {"connector": "filesystem", "path": str(path), "format": kind}


def read_here(read: FileSource) -> None:
    """Reads all of a source in this process."""
    end = read.next_offset(None, ReadLimit())
    for task in read.tasks(None, end):
        for _ in read.reader.read(task.splits, task.before):
            pass


def test_the_first_bad_record_is_named_whichever_task_fails_first(tmp_path: Path) -> None:
    for name, text in {"a": "1,x\n", "b": "2,x\nsecond,x\n", "c": "third,x\n"}.items():
        (tmp_path / name).write_text(text)
    read = source(table(PAIR, {"connector": "filesystem", "path": str(tmp_path), "format": "csv"}))
    assert isinstance(read, FileSource)
    splits = [s for task in read.tasks(None, read.next_offset(None, ReadLimit())) for s in task.splits]
    assert len(splits) == 3
    with pytest.raises(WorkerError) as caught:
        list(read.reader.read(splits[2:], splits[:2]))
    error = find_error(str(caught.value))
    assert error is not None
    assert f"({tmp_path}/b:2)" in error.message
    assert error.hint.startswith("The record: second | x")
