"""Delta tables without Spark: what is committed, pruned, read in ranges, and refused."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyarrow import parquet

from tests.connectors.lake import all_rows, batch, delta_rows, offsets, rows, staged
from tests.connectors.sinks import sink
from tests.connectors.sources import source, table
from tidemill.catalog.table import CatalogTable
from tidemill.connectors.api import ReadLimit
from tidemill.connectors.filters import AnyOf, Comparison, Nullness
from tidemill.connectors.lakehouse.source import LakeSource
from tidemill.connectors.registry import validate
from tidemill.errors import ConnectorError, NotSupportedError, StateError, ValidationError
from tidemill.runtime.progress import rows_of
from tidemill.types import logical as t

COLUMNS = {"id": t.BIGINT, "day": t.DateType(), "name": t.STRING}


def declared(root: Path, columns: Any = None, *, by: tuple[str, ...] = ()) -> CatalogTable:
    given = {"connector": "delta", "table-path": str(root)}
    return table(columns or COLUMNS, given, partitioned_by=by)


def with_options(before: CatalogTable, **options: str) -> CatalogTable:
    return replace(before, options={**before.options, **options})


def row(number: int, day: date | None = None, name: str | None = "n") -> dict[str, Any]:
    return {"id": number, "day": day, "name": name}


def append(into: CatalogTable, *added: dict[str, Any], epoch: int = 1, job: str = "job") -> None:
    target = sink(into, job=job)
    target.publish(epoch, staged(target, batch(into, added), epoch=epoch))


def ids(found: list[dict[str, Any]]) -> list[int]:
    return sorted(r["id"] for r in found)


def active(root: Path) -> list[dict[str, Any]]:
    """The rows that Parquet's reader finds in the files that are active."""
    found = pa.table(DeltaTable(root).get_add_actions())
    read = [parquet.ParquetFile(root / path).read() for path in found.column("path").to_pylist()]
    return [r for part in read for r in part.to_pylist()]


def version(root: Path) -> int:
    return int(DeltaTable(root).version())


def test_rows_come_back_and_other_readers_see_them(tmp_path: Path) -> None:
    into = declared(tmp_path)
    written = [row(1, date(2024, 1, 1), "ä"), row(2, None, None)]
    append(into, *written)
    assert all_rows(source(into)) == written
    assert active(tmp_path) == written
    assert delta_rows(tmp_path) == written


def test_an_epoch_is_committed_once(tmp_path: Path) -> None:
    into = declared(tmp_path)
    target = sink(into)
    tokens = staged(target, batch(into, [row(1)]), batch(into, [row(2)]), epoch=7)
    assert not active(tmp_path)
    target.publish(7, tokens)
    at = version(tmp_path)
    sink(into).publish(7, tokens)
    target.publish(6, staged(target, batch(into, [row(3)]), epoch=6))
    assert (ids(active(tmp_path)), version(tmp_path)) == ([1, 2], at)


def test_an_epoch_without_rows_makes_no_version(tmp_path: Path) -> None:
    target = sink(declared(tmp_path))
    at = version(tmp_path)
    target.publish(1, staged(target, batch(declared(tmp_path), [])))
    assert version(tmp_path) == at


def test_two_sinks_of_a_job_have_epochs_of_their_own(tmp_path: Path) -> None:
    into = declared(tmp_path)
    for ordinal in (0, 1):
        target = sink(into, ordinal=ordinal)
        target.publish(1, staged(target, batch(into, [row(ordinal)])))
    assert ids(active(tmp_path)) == [0, 1]


def test_a_commit_beside_another_writer_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = declared(tmp_path)
    target = sink(into)
    tokens = staged(target, batch(into, [row(1)]))
    plain, beside = DeltaTable.create_write_transaction, [row(5)]

    def late(self: DeltaTable, *args: Any, **keywords: Any) -> None:
        if beside:
            write_deltalake(tmp_path, pa.Table.from_batches([batch(into, [beside.pop()])]), mode="append")
        plain(self, *args, **keywords)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", late)
    target.publish(1, tokens)
    assert ids(active(tmp_path)) == [1, 5]


def test_an_epoch_whose_outcome_is_unknown_is_not_written_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = declared(tmp_path)
    target = sink(into)
    tokens = staged(target, batch(into, [row(1)]))
    plain, failures = DeltaTable.create_write_transaction, [OSError("gone away")]

    def lost(self: DeltaTable, *args: Any, **keywords: Any) -> None:
        plain(self, *args, **keywords)
        raise failures.pop()

    monkeypatch.setattr(DeltaTable, "create_write_transaction", lost)
    target.publish(1, tokens)
    assert (ids(active(tmp_path)), version(tmp_path)) == ([1], 1)


def test_a_checkpoint_older_than_the_table_is_an_error(tmp_path: Path) -> None:
    append(declared(tmp_path), row(1), epoch=4)
    sink(declared(tmp_path)).discard(5)
    with pytest.raises(StateError, match="epochs up to 4, but the checkpoint has none after 2"):
        sink(declared(tmp_path)).discard(3)


def test_partitions_are_in_paths_and_in_the_log(tmp_path: Path) -> None:
    columns = {"id": t.BIGINT, "day": t.DateType(), "name": t.STRING, "at": t.TimestampType(precision=6)}
    into = declared(tmp_path, columns, by=("day", "name", "at"))
    written = [
        {**row(1, date(2024, 1, 1), "a b/c%"), "at": datetime(2024, 1, 1, 12, 30, 1, 5)},
        {**row(2, None, None), "at": None},
    ]
    append(into, *written)
    assert sorted(all_rows(source(into)), key=lambda r: r["id"]) == written
    follows = source(with_options(into, mode="streaming", startingVersion="1"), streaming=True)
    (end,) = offsets(follows)
    assert sorted(rows(follows, None, end), key=lambda r: r["id"]) == written
    assert sorted(delta_rows(tmp_path), key=lambda r: r["id"]) == written


@pytest.mark.parametrize("by", [(), ("name",)])
def test_a_reader_needs_not_declare_the_partitions(tmp_path: Path, by: tuple[str, ...]) -> None:
    """Nor as the table has them: files do not hold their values, which would be NULL."""
    written = [row(1, date(2024, 1, 1)), row(2, date(2024, 1, 2))]
    append(declared(tmp_path, by=("day",)), *written)
    plain = declared(tmp_path, by=by)
    assert sorted(all_rows(source(plain)), key=lambda r: r["id"]) == written
    assert all_rows(source(plain, filters=(Comparison("day", ">", date(2024, 1, 1)),))) == written[1:]
    follows = source(with_options(plain, mode="streaming", startingVersion="1"), streaming=True)
    (end,) = offsets(follows)
    assert sorted(rows(follows, None, end), key=lambda r: r["id"]) == written


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        (Comparison("id", "=", 5), 1),
        (Comparison("id", "<", 4), 1),
        (Comparison("id", "<=", 4), 2),
        (Comparison("id", ">", 6), 1),
        (Comparison("id", "<>", 1), 3),
        (Comparison("name", ">=", "x"), 0),
        (Comparison("day", "=", date(2024, 1, 2)), 1),
        (Nullness("day", True), 1),
        (Nullness("name", True), 0),
        (AnyOf((Comparison("id", "=", 1), Comparison("id", "=", 9))), 2),
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


def test_partitions_are_pruned(tmp_path: Path) -> None:
    into = declared(tmp_path, by=("day",))
    append(into, row(1, date(2024, 1, 1)), row(2, date(2024, 1, 2)), row(3, None))
    wanted = source(into, filters=(Comparison("day", ">", date(2024, 1, 1)),))
    assert all_rows(wanted) == [row(2, date(2024, 1, 2))]
    assert all_rows(source(into, filters=(Nullness("day", True),))) == [row(3)]


def test_versions_and_times_can_be_asked_for(tmp_path: Path) -> None:
    into = declared(tmp_path)
    append(into, row(1))
    append(into, row(2), epoch=2)
    at = {v: int(DeltaTable(tmp_path).history()[2 - v]["timestamp"]) for v in (0, 1, 2)}
    assert ids(all_rows(source(with_options(into, versionAsOf="1")))) == [1]
    assert ids(all_rows(source(with_options(into, **{"as-of-millis": str(at[2] + 1000)})))) == [1, 2]
    with pytest.raises(ConnectorError, match="has no version of 1970-01-01"):
        source(with_options(into, timestampAsOf="1970-01-01 00:00:00"))
    with pytest.raises(ConnectorError, match=r"Version 9 of Delta table 'c.d.t' cannot be read"):
        all_rows(source(with_options(into, versionAsOf="9")))


def test_a_stream_reads_a_snapshot_and_then_what_is_appended(tmp_path: Path) -> None:
    into = declared(tmp_path)
    append(into, *map(row, range(5)))
    append(into, row(5), epoch=2)
    follows = source(with_options(into, mode="streaming"), streaming=True, sequence=True)
    ends = offsets(follows, ReadLimit(rows=2))
    assert [len(rows(follows, a, b)) for a, b in zip([None, *ends], ends, strict=False)] == [2, 2, 2]
    append(into, row(6), row(7), epoch=3)
    DeltaTable(tmp_path).optimize.compact()
    append(into, row(8), epoch=4)
    later = offsets(follows, start=ends[-1])
    found = [rows(follows, a, b) for a, b in zip([ends[-1], *later], later, strict=False)]
    assert [(r["id"], r["$seq"]) for part in found for r in part] == [(6, 6), (7, 7), (8, 8)]
    again = source(with_options(into, mode="streaming"), streaming=True)
    assert [r["id"] for r in rows(again, ends[0], later[-1])] == [2, 3, 4, 5, 6, 7, 8]


def test_a_stream_may_begin_with_a_version(tmp_path: Path) -> None:
    into = declared(tmp_path)
    append(into, row(1))
    follows = source(with_options(into, mode="streaming", startingVersion="2"), streaming=True)
    assert not offsets(follows)
    begin = follows.next_offset(None, ReadLimit())
    append(into, row(2), epoch=2)
    (end,) = offsets(follows, start=begin)
    assert [r["id"] for r in rows(follows, begin, end)] == [2]


def test_a_stream_does_not_skip_removed_rows(tmp_path: Path) -> None:
    into = declared(tmp_path)
    append(into, row(1), row(2))
    streaming = with_options(into, mode="streaming")
    follows = source(streaming, streaming=True)
    (end,) = offsets(follows)
    DeltaTable(tmp_path).delete("id = 1")
    with pytest.raises(ConnectorError, match=r"Version 2 of Delta table 'c.d.t' removes rows"):
        follows.next_offset(end, ReadLimit())
    rewritten = source(with_options(streaming, ignoreChanges="true"), streaming=True)
    (after,) = offsets(rewritten, start=end)
    assert ids(rows(rewritten, end, after)) == [2]
    DeltaTable(tmp_path).delete()
    emptied = source(with_options(streaming, ignoreDeletes="true", startingVersion="3"), streaming=True)
    assert not offsets(emptied)


def test_an_overwrite_replaces_the_table_or_the_partitions_that_it_writes(tmp_path: Path) -> None:
    into = declared(tmp_path, by=("day",))
    first, second = date(2024, 1, 1), date(2024, 1, 2)
    append(into, row(1, first), row(2, second))
    target = sink(into, overwrite=True, streaming=False, job="other")
    target.publish(1, staged(target, batch(into, [row(3, second)])))
    assert ids(all_rows(source(into))) == [1, 3]
    plain = declared(tmp_path / "plain")
    append(plain, row(1))
    target = sink(plain, overwrite=True, streaming=False, job="other")
    target.publish(1, staged(target, batch(plain, [])))
    assert all_rows(source(plain)) == []


def test_a_task_that_fails_leaves_no_files(tmp_path: Path) -> None:
    target = sink(declared(tmp_path))
    odd = pa.RecordBatch.from_pylist([{"id": "x", "day": None, "name": None}])
    with pytest.raises(Exception, match="CONNECTOR"):
        staged(target, odd)
    assert not list(tmp_path.glob("*.parquet"))


def test_files_roll_at_a_size(tmp_path: Path) -> None:
    into = with_options(declared(tmp_path), **{"sink.rolling-policy.file-size": "1b"})
    target = sink(into)
    tokens = staged(target, [batch(into, [row(1)]), batch(into, [row(2)])])
    target.publish(1, tokens)
    assert len(DeltaTable(tmp_path).file_uris()) == 2
    assert rows_of(tokens[0]) == 2


def test_tables_that_do_not_fit_are_refused_by_name(tmp_path: Path) -> None:
    append(declared(tmp_path), row(1))

    with pytest.raises(ValidationError, match="has no column 'x'"):
        all_rows(source(declared(tmp_path, {"x": t.INT})))
    with pytest.raises(ValidationError, match=r"'id' of .* is int64, but declared as STRING"):
        all_rows(source(declared(tmp_path, {"id": t.STRING})))
    with pytest.raises(ValidationError, match="has the column 'name', which"):
        sink(declared(tmp_path, {"id": t.BIGINT, "day": t.DateType()}))
    with pytest.raises(ValidationError, match=r"is partitioned by \(\), but declared"):
        sink(declared(tmp_path, by=("day",)))
    with pytest.raises(ConnectorError, match="There is no Delta table at"):
        all_rows(source(declared(tmp_path / "none")))
    with pytest.raises(NotSupportedError, match=r"no type for TIME\(0\)"):
        validate(declared(tmp_path, {"x": t.TimeType()}), declared(tmp_path).options, role="source")


def test_rules_that_we_do_not_check_are_refused(tmp_path: Path) -> None:
    append(declared(tmp_path), row(1))
    DeltaTable(tmp_path).alter.add_constraint({"positive": "id > 0"})
    with pytest.raises(NotSupportedError, match=r"delta\.constraints\.positive"):
        sink(declared(tmp_path))
    assert ids(all_rows(source(declared(tmp_path)))) == [1]


def test_features_that_change_what_files_mean_are_refused(tmp_path: Path) -> None:
    append(declared(tmp_path), row(1))
    features = {"readerFeatures": ["columnMapping"], "writerFeatures": ["columnMapping"]}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    (tmp_path / "_delta_log" / f"{2:020d}.json").write_text(json.dumps({"protocol": protocol}) + "\n")
    with pytest.raises(NotSupportedError, match="feature 'columnMapping'"):
        all_rows(source(declared(tmp_path)))


def test_a_row_of_another_writer_is_read(tmp_path: Path) -> None:
    """Without statistics, with more columns, and with an epoch of its own."""
    append(declared(tmp_path), row(1))
    more = {"id": pa.array([2], pa.int64()), "day": pa.array([None], pa.date32()), "name": ["x"]}
    write_deltalake(
        tmp_path,
        pa.table({**more, "more": [1]}),
        mode="append",
        schema_mode="merge",
        commit_properties=CommitProperties(app_transactions=[Transaction("other", 9)]),
    )
    found = all_rows(source(declared(tmp_path), fields=("id", "name")))
    assert found == [{"id": 1, "name": "n"}, {"id": 2, "name": "x"}]


def test_a_table_that_was_created_again_is_another_one(tmp_path: Path) -> None:
    into = declared(tmp_path)
    append(into, row(1))
    (end,) = offsets(source(with_options(into, mode="streaming"), streaming=True))
    shutil.rmtree(tmp_path)
    append(into, row(2), row(3))
    with pytest.raises(ConnectorError, match=r"'c\.d\.t' was dropped and created again"):
        source(with_options(into, mode="streaming"), streaming=True).next_offset(end, ReadLimit())
    assert ids(all_rows(source(into))) == [2, 3]


@pytest.mark.parametrize("feed", ["true", "false"])
def test_a_stream_of_changes_adds_up_to_the_table(tmp_path: Path, feed: str) -> None:
    """With a feed an update is one row before and after; without, all rows of its file go and come. No epoch
    ends between them."""
    into = declared(tmp_path)
    append(into, row(1), row(2), row(3))
    DeltaTable(tmp_path).alter.set_table_properties({"delta.enableChangeDataFeed": feed})
    changes = with_options(into, mode="streaming", readChangeFeed="true")
    follows = source(changes, streaming=True, sequence=True)
    (end,) = offsets(follows)
    assert [(r["$kind"], r["id"]) for r in rows(follows, None, end)] == [(0, 1), (0, 2), (0, 3)]
    DeltaTable(tmp_path).update({"name": "'new'"}, predicate="id <= 2")
    put_new_rows_first(tmp_path)
    DeltaTable(tmp_path).delete("id = 1")
    append(into, row(4), epoch=2)
    ends = offsets(follows, ReadLimit(rows=1), start=end)
    epochs = [rows(follows, a, b) for a, b in zip([end, *ends], ends, strict=False)]
    found = [r for epoch in epochs for r in epoch]
    numbers = [r["$seq"] for r in found]
    assert numbers == sorted(set(numbers))
    assert numbers[0] >= 3
    if feed == "true":
        kinds = [[(r["$kind"], r["id"], r["name"]) for r in epoch] for epoch in epochs]
        assert [sorted(kinds[0][:2]), sorted(kinds[0][2:])] == [
            [(1, 1, "n"), (1, 2, "n")],
            [(2, 1, "new"), (2, 2, "new")],
        ]
        assert kinds[1:] == [[(3, 1, "new")], [(0, 4, "n")]]
    left = Counter((r["id"], r["name"]) for r in map(row, (1, 2, 3)))
    for epoch, size in zip(epochs, (3, 2, 3), strict=True):
        for r in epoch:
            left[r["id"], r["name"]] += 1 if r["$kind"] in (0, 2) else -1
        assert left.total() == len(+left) == size


def test_a_stream_of_changes_reads_the_partitions_of_files_that_went(tmp_path: Path) -> None:
    """Without a feed: the log says them of removed files, too."""
    into = declared(tmp_path, by=("day", "name"))
    append(into, row(1, date(2024, 1, 1), "a/b"), row(2))
    target = sink(into, overwrite=True, streaming=False)
    target.publish(2, staged(target, batch(into, [row(3, None, "n"), row(4, date(2024, 1, 1), "a/b")])))
    changes = with_options(into, mode="streaming", readChangeFeed="true")
    follows = source(changes, streaming=True)
    ends = offsets(source(with_options(changes, startingVersion="1"), streaming=True))
    found = rows(follows, None, ends[-1])
    day = date(2024, 1, 1)
    assert {(r["$kind"], r["id"], r["day"], r["name"]) for r in found} == {
        *((kind, 1, day, "a/b") for kind in (0, 3)),
        *((kind, 2, None, "n") for kind in (0, 3)),
        *((0, 3, None, "n"), (0, 4, day, "a/b")),
    }
    log = tmp_path / "_delta_log/00000000000000000002.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        line.get("remove", {}).pop("partitionValues", None)
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(ConnectorError, match="does not say the partition of the file day="):
        source(with_options(changes, startingVersion="2"), streaming=True).next_offset(None, ReadLimit())


def test_an_empty_text_of_a_partition_is_null(tmp_path: Path) -> None:
    """As Delta's protocol says, in a snapshot and in what is appended."""
    into = declared(tmp_path, by=("name",))
    append(into, row(1, None, ""))
    assert all_rows(source(into)) == [row(1, None, None)]
    follows = source(with_options(into, mode="streaming", startingVersion="1"), streaming=True)
    assert rows(follows, None, offsets(follows)[-1]) == [row(1, None, None)]


TYPE = "_change_type"


def put_new_rows_first(table: Path) -> None:
    """Writes a version's files of changes anew with updated rows before those that they replace."""
    for path in table.glob("_change_data/*.parquet"):
        found = parquet.read_table(path)
        types = {"id": "int64", "day": "date32", "name": "string", TYPE: "string"}
        plain = found.cast(pa.schema(types.items()))
        parquet.write_table(plain.sort_by(TYPE), path)
