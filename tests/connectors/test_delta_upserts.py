"""Upserts into Delta tables without Spark: any history of changes leaves what a dict would hold."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from tests.connectors.delta_vectors import PROPERTY
from tests.connectors.lake import all_rows, batch, delta_rows, staged
from tests.connectors.sinks import sink
from tests.connectors.sources import source, table
from tests.tiers import examples
from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import UPSERT
from tidemill.connectors.lakehouse import files as data_files
from tidemill.connectors.registry import validate
from tidemill.errors import NotSupportedError
from tidemill.types import logical as t

COLUMNS = {"k": t.BIGINT, "p": t.STRING, "v": t.STRING}
ADD, REMOVE = 2, 3
"""Kinds of rows: +U and -D."""


def declared(
    root: Path, *, by: tuple[str, ...] = (), buckets: int = 16, vectors: bool = False
) -> CatalogTable:
    given = {"connector": "delta", "table-path": str(root), "sink.buckets": str(buckets)}
    if vectors:
        given[PROPERTY] = "true"
    return table(COLUMNS, given, partitioned_by=by, primary_key=("k", *by))


def row(key: int, value: str = "v", part: str = "a") -> dict[str, Any]:
    return {"k": key, "p": part, "v": value}


def upsert(into: CatalogTable, *tasks: list[tuple[int, dict[str, Any]]], epoch: int = 1, **how: Any) -> None:
    target = sink(into, kinds=UPSERT, **how)
    batches = [batch(into, [r for _, r in task], [kind for kind, _ in task]) for task in tasks]
    tokens = staged(target, *batches, epoch=epoch)
    for _ in range(2):  # as after a crash behind the commit
        target.publish(epoch, tokens)


def active(root: Path) -> list[dict[str, Any]]:
    return sorted(delta_rows(root), key=lambda r: (r["k"], r["p"]))


def paths(root: Path) -> set[str]:
    return set(pa.table(DeltaTable(root).get_add_actions()).column("path").to_pylist())


CHANGE = st.tuples(
    st.sampled_from((ADD, REMOVE)), st.integers(0, 12), st.sampled_from("xyz"), st.sampled_from("ab")
)
EPOCH = st.tuples(st.lists(CHANGE, max_size=8), st.sampled_from(("upsert", "append", "compact")))


@settings(max_examples=examples(15), deadline=None)
@given(
    epochs=st.lists(EPOCH, max_size=6),
    partitioned=st.booleans(),
    buckets=st.lists(st.integers(1, 3), min_size=6, max_size=6),
    vectors=st.booleans(),
    worn=st.sampled_from((0.25, 1.0)),
)
def test_any_history_leaves_what_a_dict_holds(
    epochs: list[tuple[list[tuple[int, int, str, str]], str]],
    partitioned: bool,
    buckets: list[int],
    vectors: bool,
    worn: float,
) -> None:
    """Beside other writers that append and compact, with another number of buckets from time to time, and
    with deletion vectors or without."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_files, "_WORN", worn)
        root, expected = Path(folder), dict[tuple[int, str], dict[str, Any]]()
        by = ("p",) if partitioned else ()
        for epoch, (changes, what) in enumerate(epochs, 1):
            into = declared(root, by=by, buckets=buckets[epoch - 1], vectors=vectors)
            task = []
            for kind, key, value, part in changes:
                one = row(key, value, part)
                at = (key, part if partitioned else "")
                expected.pop(at, None)
                if kind == ADD:
                    expected[at] = one
                task.append((kind, one))
            upsert(into, task, epoch=epoch)
            if what == "append":
                new = row(100 + epoch)
                expected[(100 + epoch, "a" if partitioned else "")] = new
                write_deltalake(root, pa.Table.from_batches([batch(into, [new])]), mode="append")
            elif what == "compact":
                DeltaTable(root).optimize.compact()
        if epochs:
            wanted = sorted(expected.values(), key=lambda r: (r["k"], r["p"]))
            assert active(root) == wanted
            assert sorted(all_rows(source(into)), key=lambda r: (r["k"], r["p"])) == wanted


def test_an_epoch_rewrites_only_files_that_hold_its_keys(tmp_path: Path) -> None:
    into = declared(tmp_path, buckets=4)
    upsert(into, [(ADD, row(k)) for k in range(40)])
    before = paths(tmp_path)
    assert len(before) == 4
    upsert(into, [(ADD, row(3, "new"))], epoch=2)
    assert len(before - paths(tmp_path)) == len(paths(tmp_path) - before) == 1
    changed = paths(tmp_path)
    upsert(into, [(ADD, row(1000))], epoch=3)
    assert changed < paths(tmp_path)


def test_small_files_of_a_bucket_are_compacted(tmp_path: Path) -> None:
    into = declared(tmp_path, buckets=1)
    for epoch in range(1, 30):
        upsert(into, [(ADD, row(epoch))], epoch=epoch)
        assert len(paths(tmp_path)) <= 9
    assert [r["k"] for r in active(tmp_path)] == list(range(1, 30))


def test_a_row_that_moved_to_another_task_stays(tmp_path: Path) -> None:
    into = declared(tmp_path)
    upsert(into, [(ADD, row(1, "new"))], [(REMOVE, row(1, "old"))])
    assert active(tmp_path) == [row(1, "new")]


def test_the_changes_of_later_tasks_are_later_if_tasks_are_in_order(tmp_path: Path) -> None:
    into = declared(tmp_path)
    upsert(
        into, [(ADD, row(1, "old")), (ADD, row(2))], [(REMOVE, row(1)), (ADD, row(2, "new"))], ordered=True
    )
    assert active(tmp_path) == [row(2, "new")]


def test_a_merge_beside_another_writer_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    into = declared(tmp_path)
    upsert(into, [(ADD, row(1)), (ADD, row(2))])
    plain, late = DeltaTable.create_write_transaction, [row(1, "another's")]

    def beside(self: DeltaTable, *args: Any, **keywords: Any) -> None:
        if late:
            write_deltalake(tmp_path, pa.Table.from_batches([batch(into, [late.pop()])]), mode="append")
        plain(self, *args, **keywords)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", beside)
    upsert(into, [(ADD, row(1, "new"))], epoch=2)
    assert active(tmp_path) == [row(1, "new"), row(2)]


def test_staged_changes_go_with_their_epoch(tmp_path: Path) -> None:
    into = declared(tmp_path)
    target = sink(into, kinds=UPSERT)
    tokens = staged(target, batch(into, [row(1)], [ADD]), epoch=3)
    staged(target, batch(into, [row(1)], [ADD]), epoch=4)
    target.discard(4)
    assert [p.name for p in (tmp_path / "_tidemill" / "job-0").iterdir()] == ["3"]
    target.publish(3, tokens)
    target.finish()
    assert not list((tmp_path / "_tidemill").iterdir())
    assert active(tmp_path) == [row(1)]


def test_an_overwrite_replaces_the_table_or_its_partitions(tmp_path: Path) -> None:
    for by, left in (((), [row(1, "new")]), (("p",), [row(1, "new"), row(3, part="b")])):
        into = declared(tmp_path / str(len(by)), by=by)
        upsert(into, [(ADD, row(1)), (ADD, row(2)), (ADD, row(3, part="b"))])
        upsert(into, [(ADD, row(1, "new"))], job="other", overwrite=True, streaming=False)
        assert active(tmp_path / str(len(by))) == left


def test_keys_that_cannot_be_bucketed_are_refused(tmp_path: Path) -> None:
    def refused(
        match: str, key: tuple[str, ...], by: tuple[str, ...], kind: t.LogicalType = t.BIGINT
    ) -> None:
        options = {"connector": "delta", "table-path": str(tmp_path)}
        wrong = table({**COLUMNS, "k": kind}, options, partitioned_by=by, primary_key=key)
        with pytest.raises(NotSupportedError, match=match):
            validate(wrong, options, role="sink")

    refused("without the partition column 'p'", ("k",), ("p",))
    refused("of partition columns alone", ("p",), ("p",))
    refused("column 'k' of type DOUBLE", ("k",), (), t.DOUBLE)


def test_an_append_only_table_and_a_change_feed_are_refused(tmp_path: Path) -> None:
    for name, message in (
        ("delta.appendOnly", "appendOnly"),
        ("delta.enableChangeDataFeed", "change data feed"),
    ):
        root = tmp_path / name
        schema = pa.schema([("k", pa.int64()), ("p", pa.string()), ("v", pa.string())])
        DeltaTable.create(root, schema, configuration={name: "true"})
        with pytest.raises(NotSupportedError, match=message):
            sink(declared(root), kinds=UPSERT)


def test_merged_files_have_statistics_of_their_own(tmp_path: Path) -> None:
    into = declared(tmp_path, buckets=1)
    upsert(into, [(ADD, row(5)), (ADD, row(7))])
    (path,) = paths(tmp_path)
    assert parquet.ParquetFile(tmp_path / path).metadata.num_rows == 2
    actions = pa.table(DeltaTable(tmp_path).get_add_actions(flatten=True))
    assert (actions["min.k"].to_pylist(), actions["max.k"].to_pylist()) == ([5], [7])


def test_a_file_that_is_much_larger_than_the_small_ones_stays(tmp_path: Path) -> None:
    into = declared(tmp_path, buckets=1)
    upsert(into, [(ADD, row(k, f"{k * 7919}")) for k in range(50_000)])
    (large,) = paths(tmp_path)
    for epoch in range(2, 20):
        upsert(into, [(ADD, row(50_000 + epoch))], epoch=epoch)
        assert large in paths(tmp_path)
        assert len(paths(tmp_path)) <= 9
    assert len(active(tmp_path)) == 50_018
