"""Upserts into Delta tables that take deletion vectors: which files stay, which vectors they get, and what
counts if a writer dies or another one is faster."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet

from tests.connectors.delta_vectors import PROPERTY, actions, enabled, mark, marked, vector
from tests.connectors.lake import all_rows, batch, delta_rows, offsets, rows, staged
from tests.connectors.sinks import sink
from tests.connectors.sources import source, table
from tests.connectors.test_delta_upserts import (
    ADD,
    COLUMNS,
    REMOVE,
    active,
    declared,
    paths,
    row,
    upsert,
)
from tests.tiers import examples
from tidemill.changelog.rowkind import UPSERT
from tidemill.connectors.delta import commit_file
from tidemill.connectors.lakehouse import files as data_files
from tidemill.connectors.registry import connector
from tidemill.errors import ValidationError

SCHEMA = pa.schema([("k", pa.int64()), ("p", pa.string()), ("v", pa.string())])


def test_a_change_marks_rows_and_adds_the_new_ones(tmp_path: Path) -> None:
    into = declared(tmp_path, buckets=1, vectors=True, by=("p",))
    upsert(into, [(ADD, row(k, part="a b")) for k in range(40)])
    before = paths(tmp_path)
    upsert(into, [(ADD, row(3, "new", "a b")), (REMOVE, row(4, part="a b"))], epoch=2)
    upsert(into, [(REMOVE, row(5, part="a b"))], epoch=3)
    (old,) = before
    assert before < paths(tmp_path)
    assert set(marked(tmp_path).values()) == {3}
    gone, come = (next(a[k] for a in actions(tmp_path) if k in a) for k in ("remove", "add"))
    assert (gone["deletionVector"]["cardinality"], come["deletionVector"]["cardinality"]) == (2, 3)
    assert gone["path"] == come["path"] == old
    assert come["stats"].endswith('"tightBounds": false}')
    assert '"numRecords": 40' in come["stats"]
    left = [row(3, "new", "a b"), *(row(k, part="a b") for k in range(40) if k not in (3, 4, 5))]
    assert active(tmp_path) == sorted(left, key=lambda r: r["k"])
    assert sorted(all_rows(source(into)), key=lambda r: r["k"]) == active(tmp_path)
    DeltaTable(tmp_path).optimize.compact()
    assert (len(paths(tmp_path)), marked(tmp_path)) == (1, {})
    assert active(tmp_path) == sorted(left, key=lambda r: r["k"])


def test_only_keys_of_old_files_are_read(tmp_path: Path) -> None:
    """The pages of other columns may be damaged."""
    into = declared(tmp_path, buckets=1, vectors=True)
    upsert(into, [(ADD, row(k)) for k in range(40)])
    (path,) = paths(tmp_path)
    column = parquet.ParquetFile(tmp_path / path).metadata.row_group(0).column(2)
    start = column.dictionary_page_offset or column.data_page_offset
    data = bytearray((tmp_path / path).read_bytes())
    data[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
    (tmp_path / path).write_bytes(data)
    upsert(into, [(ADD, row(3, "new"))], epoch=2)
    assert marked(tmp_path) == {path: 1}


def test_a_file_with_many_deleted_rows_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "_WORN", 0.25)
    into = declared(tmp_path, buckets=1, vectors=True)
    upsert(into, [(ADD, row(k)) for k in range(8)])
    before = paths(tmp_path)
    upsert(into, [(REMOVE, row(k)) for k in (1, 2)], epoch=2)
    assert paths(tmp_path) == before
    assert list(marked(tmp_path).values()) == [2]
    upsert(into, [(REMOVE, row(3))], epoch=3)
    assert not paths(tmp_path) & before
    assert not marked(tmp_path)
    assert [r["k"] for r in active(tmp_path)] == [0, 4, 5, 6, 7]
    upsert(into, [(REMOVE, row(k)) for k in (0, 4, 5, 6, 7)], epoch=4)
    assert not paths(tmp_path)


def test_small_files_with_vectors_are_compacted(tmp_path: Path) -> None:
    into = declared(tmp_path, buckets=1, vectors=True)
    left: dict[int, str] = {}
    for epoch in range(1, 14):
        changes = [(ADD, row(k, f"{epoch}")) for k in range(epoch * 10, epoch * 10 + 10)]
        changes += [(ADD, row(epoch * 10 - 5, "again")), (REMOVE, row(epoch * 10 - 4))]
        upsert(into, changes, epoch=epoch)
        for kind, one in changes:
            left.pop(one["k"], None)
            left |= {one["k"]: one["v"]} if kind == ADD else {}
        assert len(paths(tmp_path)) <= 9
    assert {r["k"]: r["v"] for r in active(tmp_path)} == left


def test_a_key_comes_back_into_a_file_that_lost_it(tmp_path: Path) -> None:
    into = declared(tmp_path, buckets=1, vectors=True)
    upsert(into, [(ADD, row(k)) for k in range(40)])
    changes = [(REMOVE, ""), (ADD, "x"), (ADD, "y"), (REMOVE, ""), (ADD, "z")]
    for epoch, (kind, value) in enumerate(changes, 2):
        upsert(into, [(kind, row(7, value))], epoch=epoch)
    assert [r["v"] for r in active(tmp_path) if r["k"] == 7] == ["z"]
    assert len(active(tmp_path)) == 40


def test_a_stream_of_changes_adds_up_to_the_table(tmp_path: Path) -> None:
    """Over vectors, files that are written anew, and compactions."""
    chance, into = random.Random(7), declared(tmp_path, buckets=2, vectors=True)
    upsert(into, [(ADD, row(k)) for k in range(60)])
    given = {"mode": "streaming", "readChangeFeed": "true"}
    follows = source(replace(into, options={**into.options, **given}), streaming=True)
    (end,) = offsets(follows)
    found = Counter((r["k"], r["v"]) for r in rows(follows, None, end))
    for epoch in range(2, 2 + examples(20)):
        keys = chance.sample(range(80), chance.randint(1, 12))
        upsert(into, [(chance.choice((ADD, REMOVE)), row(k, f"{epoch}")) for k in keys], epoch=epoch)
        for after in offsets(follows, start=end):
            for r in rows(follows, end, after):
                found[r["k"], r["v"]] += 1 if r["$kind"] in (0, 2) else -1
            end = after
        assert +found == Counter((r["k"], r["v"]) for r in active(tmp_path))
        assert found.total() == len(+found)


def test_a_writer_that_dies_before_the_commit_has_changed_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = declared(tmp_path, buckets=2, vectors=True)
    upsert(into, [(ADD, row(k)) for k in range(40)])
    target = sink(into, kinds=UPSERT)
    tokens = staged(target, batch(into, [row(3, "new"), row(9)], [ADD, REMOVE]), epoch=2)
    before = active(tmp_path)

    class Killed(BaseException):
        pass

    def dies(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(commit_file, "_put", dies)
        with pytest.raises(Killed):
            target.publish(2, tokens)
    assert active(tmp_path) == before
    for _ in range(2):
        sink(into, kinds=UPSERT).publish(2, tokens)
    assert [r for r in active(tmp_path) if r["k"] in (3, 9)] == [row(3, "new")]
    assert DeltaTable(tmp_path).version() == 2
    assert DeltaTable(tmp_path).transaction_version("tidemill-job-0") == 2


@pytest.mark.parametrize("late", ["vector", "append", "rewrite"])
def test_an_epoch_beside_another_writer_counts_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    """The other one deletes rows of the same file, or has the file no more: the epoch looks again."""
    into = declared(tmp_path, buckets=1, vectors=True)
    upsert(into, [(ADD, row(k)) for k in range(40)])
    (path,) = paths(tmp_path)
    plain, left = commit_file._put, [late]

    def beside(*given: Any) -> None:
        match left.pop() if left else "":
            case "vector":
                mark(tmp_path, path, vector(tmp_path, [0, 1]))
            case "append":
                new = pa.Table.from_batches([batch(into, [row(100)])])
                write_deltalake(tmp_path, new, mode="append")
            case "rewrite":
                DeltaTable(tmp_path).delete("k = 0")
        plain(*given)

    monkeypatch.setattr(commit_file, "_put", beside)
    upsert(into, [(REMOVE, row(3))], epoch=2)
    keys = [r["k"] for r in active(tmp_path)]
    gone = {"vector": {0, 1, 3}, "append": {3}, "rewrite": {0, 3}}[late]
    assert keys == [k for k in range(40) if k not in gone] + ([100] if late == "append" else [])


def test_tables_without_the_property_keep_no_vectors(tmp_path: Path) -> None:
    """Files are written anew, without the rows that a former vector has deleted."""
    enabled(tmp_path, SCHEMA)
    into = declared(tmp_path, buckets=1)
    upsert(into, [(ADD, row(k)) for k in range(40)])
    upsert(into, [(REMOVE, row(3))], epoch=2)
    assert list(marked(tmp_path).values()) == [1]
    DeltaTable(tmp_path).alter.set_table_properties({PROPERTY: "false"})
    upsert(into, [(REMOVE, row(4))], epoch=3)
    assert not marked(tmp_path)
    assert [r["k"] for r in active(tmp_path)] == [k for k in range(40) if k not in (3, 4)]


def test_files_of_others_with_vectors_go_into_buckets(tmp_path: Path) -> None:
    enabled(tmp_path, SCHEMA)
    write_deltalake(tmp_path, pa.table({"k": range(10), "p": ["a"] * 10, "v": ["v"] * 10}), mode="append")
    (path,) = paths(tmp_path)
    mark(tmp_path, path, vector(tmp_path, [2, 3]))
    upsert(declared(tmp_path, buckets=2), [(ADD, row(3, "new")), (REMOVE, row(4))])
    assert not marked(tmp_path)
    assert [(r["k"], r["v"]) for r in active(tmp_path)] == [
        *((k, "v") for k in (0, 1)),
        (3, "new"),
        *((k, "v") for k in range(5, 10)),
    ]


def test_all_rows_of_a_table_with_vectors_can_go(tmp_path: Path) -> None:
    into = declared(tmp_path, buckets=1, vectors=True)
    for epoch, what in ((1, "overwrite"), (11, "truncate")):
        upsert(into, [(ADD, row(k)) for k in range(40)], epoch=epoch)
        upsert(into, [(REMOVE, row(3))], epoch=epoch + 1)
        assert marked(tmp_path)
        if what == "overwrite":
            upsert(into, [(ADD, row(1, "new"))], job="other", overwrite=True, streaming=False)
            assert active(tmp_path) == [row(1, "new")]
        else:
            connector(into.options).truncate(into, into.options)  # type: ignore[attr-defined]
            assert not active(tmp_path)


def test_a_new_table_has_the_feature_alone(tmp_path: Path) -> None:
    sink(declared(tmp_path / "new", vectors=True), kinds=UPSERT)
    protocol = DeltaTable(tmp_path / "new").protocol()
    features = (["deletionVectors"], ["deletionVectors"])
    assert (protocol.reader_features, protocol.writer_features) == features
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    sink(declared(tmp_path / "new", vectors=True), kinds=UPSERT)
    assert DeltaTable(tmp_path / "new").version() == 0


def test_a_declaration_of_another_value_is_refused(tmp_path: Path) -> None:
    sink(declared(tmp_path / "with", vectors=True), kinds=UPSERT)
    sink(declared(tmp_path / "without"), kinds=UPSERT)
    for name, value in (("with", "false"), ("without", "true")):
        given = {"connector": "delta", "table-path": str(tmp_path / name), PROPERTY: value}
        with pytest.raises(ValidationError, match=f"'{PROPERTY}' = '{value}', but the Delta table"):
            sink(table(COLUMNS, given, primary_key=("k",)), kinds=UPSERT)


def test_versions_make_checkpoints(tmp_path: Path) -> None:
    into = declared(tmp_path, buckets=1, vectors=True)
    upsert(into, [(ADD, row(k)) for k in range(40)])
    DeltaTable(tmp_path).alter.set_table_properties({"delta.checkpointInterval": "2"})
    for epoch in range(2, 9):
        upsert(into, [(REMOVE, row(epoch))], epoch=epoch)
    assert len(list((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))) == 3
    for path in (tmp_path / "_delta_log").glob("0000000000000000000[0-5].json"):
        path.unlink()
    upsert(into, [(REMOVE, row(20))], epoch=9)
    assert [r["k"] for r in all_rows(source(into))] == [0, 1, *range(9, 20), *range(21, 40)]
    assert [r["k"] for r in delta_rows(tmp_path)] == [0, 1, *range(9, 20), *range(21, 40)]
