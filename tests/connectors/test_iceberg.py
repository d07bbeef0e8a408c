"""Iceberg tables without Spark: what is committed, pruned, read in ranges, upserted and refused."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table import Table

from tests.connectors.lake import all_rows, batch, offsets, rows, staged
from tests.connectors.sinks import sink
from tests.connectors.sources import source, table
from tests.tiers import examples
from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import UPSERT
from tidemill.connectors.api import ReadLimit
from tidemill.connectors.filters import Comparison, Nullness
from tidemill.connectors.iceberg.catalogs import catalog_of
from tidemill.connectors.lakehouse.source import LakeSource
from tidemill.connectors.registry import validate
from tidemill.errors import ConnectorError, NotSupportedError, StateError, ValidationError
from tidemill.types import logical as t

COLUMNS = {"id": t.BIGINT, "day": t.DateType(), "name": t.STRING}
ADD, REMOVE = 2, 3
"""Kinds of rows: +U and -D."""


def declared(
    root: Path, columns: Any = None, *, by: tuple[str, ...] = (), key: tuple[str, ...] = ()
) -> CatalogTable:
    given = {"connector": "iceberg", "warehouse": str(root)}
    return table(columns or COLUMNS, given, partitioned_by=by, primary_key=key)


def with_options(before: CatalogTable, **options: str) -> CatalogTable:
    return replace(before, options={**before.options, **options})


def row(number: int, day: date | None = None, name: str | None = "n") -> dict[str, Any]:
    return {"id": number, "day": day, "name": name}


def append(into: CatalogTable, *added: dict[str, Any], epoch: int = 1, **how: Any) -> None:
    target = sink(into, **how)
    target.publish(epoch, staged(target, batch(into, added), epoch=epoch))


def opened(root: Path) -> Table:
    return catalog_of("iceberg", declared(root).options).load_table("default.t")


def others(root: Path) -> list[dict[str, Any]]:
    """The rows, by pyiceberg's own reader."""
    found: list[dict[str, Any]] = opened(root).scan().to_arrow().to_pylist()
    return sorted(found, key=lambda r: r["id"])


def ids(found: list[dict[str, Any]]) -> list[int]:
    return sorted(r["id"] for r in found)


def test_rows_come_back_and_other_readers_see_them(tmp_path: Path) -> None:
    into = declared(tmp_path)
    written = [row(1, date(2024, 1, 1), "ä"), row(2, None, None)]
    append(into, *written)
    assert all_rows(source(into)) == written
    assert others(tmp_path) == written


def test_an_epoch_is_committed_once(tmp_path: Path) -> None:
    into = declared(tmp_path)
    target = sink(into)
    tokens = staged(target, batch(into, [row(1)]), batch(into, [row(2)]), epoch=7)
    assert not others(tmp_path)
    target.publish(7, tokens)
    sink(into).publish(7, tokens)
    target.publish(6, staged(target, batch(into, [row(3)]), epoch=6))
    sink(into, job="other").publish(1, staged(target, batch(into, [row(4)])))
    sink(into).publish(7, tokens)
    assert ids(others(tmp_path)) == [1, 2, 4]
    with pytest.raises(StateError, match="epochs up to 7, but the checkpoint has none after 2"):
        target.discard(3)


def test_a_commit_beside_another_writer_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the other one is a process of the same job."""
    into = declared(tmp_path)
    target = sink(into)
    tokens = staged(target, batch(into, [row(1)]))
    plain, beside = (
        Table.transaction,
        [lambda: append(into, row(5), job="other"), lambda: sink(into).publish(1, tokens)],
    )

    def late(self: Table) -> Any:
        if beside:
            beside.pop(0)()
        return plain(self)

    monkeypatch.setattr(Table, "transaction", late)
    target.publish(1, tokens)
    assert ids(others(tmp_path)) == [1, 5]


def test_partitions_are_constants_of_their_files(tmp_path: Path) -> None:
    columns = {**COLUMNS, "at": t.TimestampType(precision=6)}
    into = declared(tmp_path, columns, by=("day", "name", "at"))
    written = [
        {**row(1, date(2024, 1, 1), "a b/c%"), "at": datetime(2024, 1, 1, 12, 30, 1, 5)},
        {**row(2, None, None), "at": None},
    ]
    append(into, *written)
    assert sorted(all_rows(source(into)), key=lambda r: r["id"]) == written
    assert others(tmp_path) == written
    wanted = source(into, filters=(Comparison("day", "=", date(2024, 1, 1)),))
    assert ids(all_rows(wanted)) == [1]


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        (Comparison("id", "=", 5), 1),
        (Comparison("id", "<=", 4), 2),
        (Comparison("name", ">=", "x"), 0),
        (Comparison("day", "=", date(2024, 1, 2)), 1),
        (Nullness("day", True), 1),
    ],
)
def test_files_that_cannot_hold_wanted_rows_are_not_read(tmp_path: Path, condition: Any, left: int) -> None:
    into = declared(tmp_path)
    for epoch, start in enumerate((1, 4, 7), 1):
        day = date(2024, 1, epoch) if epoch < 3 else None
        append(into, *(row(n, day) for n in range(start, start + 3)), epoch=epoch)
    found = source(into, filters=(condition,))
    assert isinstance(found, LakeSource)
    assert len(found.pieces(None, found.next_offset(None, ReadLimit()))) == left


def test_snapshots_and_times_can_be_asked_for(tmp_path: Path) -> None:
    into = declared(tmp_path)
    append(into, row(1))
    first = opened(tmp_path).current_snapshot()
    assert first is not None
    append(into, row(2), epoch=2)
    assert ids(all_rows(source(with_options(into, **{"snapshot-id": str(first.snapshot_id)})))) == [1]
    at = {"as-of-timestamp": str(first.timestamp_ms)}
    assert ids(all_rows(source(with_options(into, **at)))) == [1]
    with pytest.raises(ConnectorError, match="no snapshot of 5 ms"):
        all_rows(source(with_options(into, **{"as-of-timestamp": "5"})))
    with pytest.raises(ConnectorError, match="does not have snapshot 5 any more"):
        all_rows(source(with_options(into, **{"snapshot-id": "5"})))


def test_a_stream_reads_a_snapshot_and_then_what_is_appended(tmp_path: Path) -> None:
    into = declared(tmp_path)
    follows = source_of_stream(into)
    append(into, *map(row, range(5)))
    ends = offsets(follows, ReadLimit(rows=2))
    assert [len(rows(follows, a, b)) for a, b in zip([None, *ends], ends, strict=False)] == [2, 2, 1]
    append(into, row(5), row(6), epoch=2)
    append(into, row(7), epoch=3)
    later = offsets(follows, start=ends[-1])
    found = [rows(follows, a, b) for a, b in zip([ends[-1], *later], later, strict=False)]
    assert [(r["id"], r["$seq"]) for part in found for r in part] == [(5, 5), (6, 6), (7, 7)]
    assert [r["id"] for r in rows(source_of_stream(into), ends[0], later[-1])] == [2, 3, 4, 5, 6, 7]


def source_of_stream(into: CatalogTable, **options: str) -> Any:
    given = with_options(into, streaming="true", **{"monitor-interval": "0 s"}, **options)
    sink(into)
    return source(given, streaming=True, sequence=True)


def test_a_stream_begins_with_an_empty_table_or_behind_a_snapshot(tmp_path: Path) -> None:
    into = declared(tmp_path)
    follows = source_of_stream(into)
    empty = follows.next_offset(None, ReadLimit())
    append(into, row(1))
    append(into, row(2), epoch=2)
    (end,) = offsets(follows, start=empty)
    assert [r["id"] for r in rows(follows, empty, end)] == [1, 2]
    first = opened(tmp_path).snapshots()[0].snapshot_id
    behind = source_of_stream(into, **{"start-snapshot-id": str(first)})
    (end,) = offsets(behind)
    assert [r["id"] for r in rows(behind, None, end)] == [2]


def test_a_stream_does_not_skip_removed_rows(tmp_path: Path) -> None:
    into = declared(tmp_path)
    append(into, row(1), row(2))
    follows = source_of_stream(into)
    (end,) = offsets(follows)
    opened(tmp_path).delete("id = 1")
    with pytest.raises(ConnectorError, match="is an overwrite, which"):
        follows.next_offset(end, ReadLimit())


def test_columns_are_found_by_their_ids(tmp_path: Path) -> None:
    """A column that was renamed, and another one that took its name over."""
    append(declared(tmp_path), row(1, name="old"))
    with opened(tmp_path).update_schema() as update:
        update.rename_column("name", "title")
    with opened(tmp_path).update_schema() as update:
        update.add_column("name", opened(tmp_path).schema().find_type("title"))
    into = declared(tmp_path, {**COLUMNS, "title": t.STRING})
    append(into, {**row(2, name="new"), "title": "second"}, epoch=2)
    found = all_rows(source(into, fields=("id", "name", "title")))
    assert sorted(found, key=lambda r: r["id"]) == [
        {"id": 1, "name": None, "title": "old"},
        {"id": 2, "name": "new", "title": "second"},
    ]


def test_an_overwrite_replaces_the_table_or_the_partitions_that_it_writes(tmp_path: Path) -> None:
    into = declared(tmp_path, by=("day",))
    first, second = date(2024, 1, 1), date(2024, 1, 2)
    append(into, row(1, first), row(2, second))
    append(into, row(3, second), overwrite=True, streaming=False, job="other")
    assert ids(others(tmp_path)) == [1, 3]


CHANGE = st.tuples(st.sampled_from((ADD, REMOVE)), st.integers(0, 12), st.sampled_from("xyz"))
EPOCH = st.tuples(st.lists(CHANGE, max_size=8), st.booleans())


@settings(max_examples=examples(6), deadline=None)
@given(epochs=st.lists(EPOCH, min_size=1, max_size=4))
def test_any_history_leaves_what_a_dict_holds(epochs: list[tuple[list[tuple[int, int, str]], bool]]) -> None:
    """Beside another writer that appends."""
    with tempfile.TemporaryDirectory() as folder:
        root, expected = Path(folder), dict[int, dict[str, Any]]()
        into = with_options(declared(root, key=("id",)), **{"sink.buckets": "3"})
        for epoch, (changes, other) in enumerate(epochs, 1):
            target = sink(into, kinds=UPSERT)
            for kind, key, value in changes:
                expected.pop(key, None)
                if kind == ADD:
                    expected[key] = row(key, name=value)
            made = batch(into, [row(k, name=v) for _, k, v in changes], [kind for kind, _, _ in changes])
            tokens = staged(target, made, epoch=epoch)
            for _ in range(2):  # as after a crash behind the commit
                target.publish(epoch, tokens)
            if other:
                expected[100 + epoch] = row(100 + epoch)
                append(declared(root), expected[100 + epoch], job="other", epoch=epoch)
        wanted = sorted(expected.values(), key=lambda r: r["id"])
        assert others(root) == wanted
        assert sorted(all_rows(source(into)), key=lambda r: r["id"]) == wanted


def test_tables_and_catalogs_that_do_not_fit_are_refused_by_name(tmp_path: Path) -> None:
    append(declared(tmp_path), row(1))
    with pytest.raises(ValidationError, match="has no column 'x'"):
        all_rows(source(declared(tmp_path, {"x": t.INT})))
    with pytest.raises(ValidationError, match=r"is partitioned by \(\), but declared"):
        sink(declared(tmp_path, by=("day",)))
    with pytest.raises(ConnectorError, match=r"There is no Iceberg table default\.none"):
        all_rows(source(with_options(declared(tmp_path), **{"catalog-table": "none"})))

    def refused(match: str, columns: Any = None, **options: str) -> None:
        wrong = with_options(declared(tmp_path, columns), **options)
        with pytest.raises((NotSupportedError, ValidationError), match=match):
            validate(wrong, wrong.options, role="source")

    refused("no type for SMALLINT", {"id": t.SmallIntType()})
    refused("of type 'hadoop'", **{"catalog-type": "hadoop"})
    refused("is for 'streaming' = 'false'", streaming="true", **{"snapshot-id": "1"})


def test_hidden_partitions_are_read_but_not_written(tmp_path: Path) -> None:
    append(declared(tmp_path), row(1, date(2024, 1, 1)))
    with opened(tmp_path).update_spec() as update:
        update.add_field("day", "year")
    assert ids(all_rows(source(declared(tmp_path)))) == [1]
    with pytest.raises(NotSupportedError, match="hidden partition 'day_year'"):
        sink(declared(tmp_path))


def test_a_table_that_was_created_again_is_another_one(tmp_path: Path) -> None:
    into = declared(tmp_path)
    append(into, row(1))
    (end,) = offsets(source_of_stream(into))
    catalog_of("iceberg", into.options).drop_table("default.t")
    append(into, row(2), row(3))
    with pytest.raises(ConnectorError, match=r"'c\.d\.t' was dropped and created again"):
        source_of_stream(into).next_offset(end, ReadLimit())
    assert ids(all_rows(source(into))) == [2, 3]


def test_a_quiet_table_is_left_alone_for_a_while(tmp_path: Path) -> None:
    into = declared(tmp_path)
    append(into, row(1))
    follows = source_of_stream(into)
    clock = [0.0]
    history = replace(follows.history, interval=60, clock=lambda: clock[0])
    (first,) = offsets(replace(follows, history=history))
    append(into, row(2), epoch=2)
    assert not offsets(replace(follows, history=history), start=first)
    clock[0] = 60
    assert len(offsets(replace(follows, history=history), start=first)) == 1


def test_an_upsert_keeps_the_values_of_a_renamed_column(tmp_path: Path) -> None:
    into = with_options(declared(tmp_path, key=("id",)), **{"sink.buckets": "1"})
    upserted(into, row(1, name="old"), row(2, name="old"), epoch=1)
    with opened(tmp_path).update_schema() as update:
        update.rename_column("name", "title")
    columns = {"id": t.BIGINT, "day": t.DateType(), "title": t.STRING}
    renamed = with_options(declared(tmp_path, columns, key=("id",)), **{"sink.buckets": "1"})
    upserted(renamed, {"id": 2, "day": None, "title": "new"}, epoch=2)
    assert [(r["id"], r["title"]) for r in others(tmp_path)] == [(1, "old"), (2, "new")]


def upserted(into: CatalogTable, *added: dict[str, Any], epoch: int) -> None:
    target = sink(into, kinds=UPSERT)
    target.publish(epoch, staged(target, batch(into, added, [ADD] * len(added)), epoch=epoch))
