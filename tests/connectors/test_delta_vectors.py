"""Deletion vectors of other writers: what a query and a stream read of files that have lost rows."""

from __future__ import annotations

import json
import random
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet

from tests.connectors.delta_vectors import actions, enabled, mark, vector
from tests.connectors.lake import all_rows, delta_rows, offsets, rows
from tests.connectors.sources import source, table
from tests.tiers import examples
from tidemill.catalog.table import CatalogTable
from tidemill.connectors.api import ReadLimit
from tidemill.connectors.delta.files import VectorLog
from tidemill.connectors.delta.table import DeltaPlace
from tidemill.connectors.delta.vectors import Vector
from tidemill.connectors.filters import Comparison, Nullness
from tidemill.connectors.lakehouse.files import enough, whole
from tidemill.errors import ConnectorError, NotSupportedError
from tidemill.files.storage import Storage
from tidemill.types import logical as t

COLUMNS = {"id": t.BIGINT, "p": t.STRING}
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])


def declared(root: Path, *by: str, **options: str) -> CatalogTable:
    given = {"connector": "delta", "table-path": str(root), **options}
    return table(COLUMNS, given, partitioned_by=by)


def filled(root: Path, count: int = 10, by: tuple[str, ...] = (), part: str = "a") -> str:
    """A table that takes vectors, and the logged path of its one file with the ids from 0 on."""
    enabled(root, SCHEMA, by)
    return appended(root, range(count), part)


def appended(root: Path, ids: Any, part: str = "a") -> str:
    new = pa.table({"id": pa.array(ids, pa.int64()), "p": [part] * len(ids)})
    write_deltalake(root, new, mode="append")
    return next(str(a["add"]["path"]) for a in actions(root) if "add" in a)


def ids(found: list[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in found)


def streaming(root: Path, **options: str) -> Any:
    return source(declared(root, mode="streaming", **options), streaming=True, sequence=True)


def test_the_examples_of_the_protocol(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    inline = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    found = {"storageType": "i", "pathOrInlineDv": inline, "sizeInBytes": 44, "cardinality": 6}
    assert Vector.logged(storage, found).numbers(storage).tolist() == [3, 4, 7, 11, 18, 29]
    relative = {**found, "storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4}
    path = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert Vector.logged(storage, relative).path == path
    assert Vector.logged(storage, relative).action() == relative


@pytest.mark.parametrize(("kind", "prefix"), [("u", ""), ("u", "ab"), ("p", ""), ("i", "")])
def test_deleted_rows_are_not_read(tmp_path: Path, kind: str, prefix: str) -> None:
    """In any version, from commits and from a checkpoint, whole and counted alone."""
    path = filled(tmp_path, by=("p",), part="a b/ü")
    mark(tmp_path, path, vector(tmp_path, [0, 4], kind, prefix))
    mark(tmp_path, path, vector(tmp_path, [0, 4, 9], kind, prefix))
    left = [1, 2, 3, 5, 6, 7, 8]
    into = declared(tmp_path, "p")
    for checkpoint in (False, True):
        if checkpoint:
            DeltaTable(tmp_path).create_checkpoint()
            appended(tmp_path, range(20, 22), "other")
            left = [*left, 20, 21]
        assert ids(all_rows(source(into))) == left == ids(delta_rows(tmp_path))
        earlier = source(declared(tmp_path, "p", versionAsOf="2"))
        assert ids(all_rows(earlier)) == [1, 2, 3, 5, 6, 7, 8, 9]
        assert ids(all_rows(source(declared(tmp_path, "p", versionAsOf="1")))) == list(range(10))
        assert len(all_rows(source(into, fields=("p",)))) == len(left)


def test_random_rows_are_gone_wherever_pieces_begin(tmp_path: Path) -> None:
    """Row groups of a few rows, epochs and tasks that end within them, and limits."""
    chance = random.Random(3)
    for case in range(examples(8)):
        root = tmp_path / str(case)
        path = filled(root, 40)
        parquet.write_table(
            parquet.read_table(root / path), root / path, row_group_size=chance.randint(1, 15)
        )
        gone = set(chance.sample(range(40), chance.randint(1, 40)))
        mark(root, path, vector(root, gone))
        last = appended(root, range(40, 50))
        mark(root, last, vector(root, [2]))
        left = [number for number in range(50) if number not in gone | {42}]
        follows = streaming(root)
        ends = offsets(follows, ReadLimit(rows=chance.randint(1, 12)))
        read = [row for a, b in zip([None, *ends], ends, strict=False) for row in rows(follows, a, b)]
        assert [row["id"] for row in read] == left
        assert [row["$seq"] for row in read] == left
        first = source(declared(root), limit=3)
        pieces = list(enough(whole(first.history.files(3 + 1, whole=True)), 3))  # type: ignore[attr-defined]
        found = [row for part in first.reader.read(pieces) for row in part.to_pylist()]  # type: ignore[attr-defined]
        assert [row["id"] for row in found] == left[:3]


def test_bounds_of_files_with_vectors_still_rule_files_out(tmp_path: Path) -> None:
    path = filled(tmp_path)
    mark(tmp_path, path, vector(tmp_path, [0, 9]))
    into = declared(tmp_path)
    assert not all_rows(source(into, filters=(Comparison("id", ">", 9),)))
    assert len(all_rows(source(into, filters=(Nullness("id", False),)))) == 8


def test_vectors_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    path = filled(tmp_path)
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    elsewhere.mkdir()
    good = vector(tmp_path, [1, 2])
    (stored,) = tmp_path.glob("*.bin")
    damaged = stored.read_bytes()
    mark(tmp_path, path, good)
    for data, message in (
        (damaged[:-6] + b"x" + damaged[-5:], "it is damaged"),
        (b"\2" + damaged[1:], "another version than 1"),
        (damaged[:20], "cannot be read"),
    ):
        stored.write_bytes(data)
        with pytest.raises(Exception, match=message):
            all_rows(source(declared(tmp_path)))
    stored.unlink()
    with pytest.raises(Exception, match=rf"deletion vector {stored} cannot be read"):
        all_rows(source(declared(tmp_path)))
    mark(tmp_path, path, {**vector(tmp_path, [1, 2]), "cardinality": 3})
    with pytest.raises(Exception, match="has 2 rows, but the log says 3"):
        all_rows(source(declared(tmp_path)))
    mark(tmp_path, path, vector(elsewhere, [1], "p"))
    with pytest.raises(NotSupportedError, match="outside of its table's directory"):
        all_rows(source(declared(tmp_path)))
    up = {**good, "pathOrInlineDv": f"../{elsewhere.name}{good['pathOrInlineDv']}"}
    mark(tmp_path, path, up)
    with pytest.raises(NotSupportedError, match="outside of its table's directory"):
        all_rows(source(declared(tmp_path)))
    mark(tmp_path, path, {**good, "storageType": "x"})
    with pytest.raises(NotSupportedError, match="of the storage type 'x'"):
        all_rows(source(declared(tmp_path)))


def test_a_stream_does_not_skip_rows_that_a_vector_deletes(tmp_path: Path) -> None:
    """And with an option that lets it go on it reads no row again."""
    path = filled(tmp_path)
    follows = streaming(tmp_path)
    (end,) = offsets(follows)
    mark(tmp_path, path, vector(tmp_path, [3]))
    with pytest.raises(ConnectorError, match=r"Version 2 of Delta table 'c.d.t' removes rows"):
        follows.next_offset(end, ReadLimit())
    mark(tmp_path, path, vector(tmp_path, [3, 5]))
    appended(tmp_path, [100])
    for option in ("ignoreDeletes", "ignoreChanges"):
        lets = streaming(tmp_path, **{option: "true"})
        ends = offsets(lets, start=end)
        assert [row["id"] for row in rows(lets, end, ends[-1])] == [100]


def test_rows_that_an_older_vector_had_deleted_come_back(tmp_path: Path) -> None:
    """As RESTORE brings them back."""
    path = filled(tmp_path)
    mark(tmp_path, path, vector(tmp_path, [3, 4]))
    for described, left, come in ((vector(tmp_path, [4, 5]), 8, [3]), (None, 10, [4, 5])):
        (end,) = offsets(streaming(tmp_path))
        mark(tmp_path, path, described)
        lets = streaming(tmp_path, ignoreChanges="true")
        ends = offsets(lets, start=end)
        assert [row["id"] for row in rows(lets, end, ends[-1])] == come
        assert len(all_rows(source(declared(tmp_path)))) == left
    never = streaming(tmp_path, ignoreDeletes="true", startingVersion="3")
    with pytest.raises(ConnectorError, match=r"Version 3 .* removes rows"):
        never.next_offset(None, ReadLimit())


def test_a_stream_of_changes_reads_the_rows_of_which_vectors_differ(tmp_path: Path) -> None:
    path = filled(tmp_path)
    follows = streaming(tmp_path, readChangeFeed="true")
    (end,) = offsets(follows)
    mark(tmp_path, path, vector(tmp_path, [3, 4]))
    mark(tmp_path, path, vector(tmp_path, [4, 5]))
    mark(tmp_path, path, None)
    mark(tmp_path, path, vector(tmp_path, range(10)))
    ends = offsets(follows, start=end)
    epochs = [rows(follows, a, b) for a, b in zip([end, *ends], ends, strict=False)]
    found = Counter((row["$kind"], row["id"]) for epoch in epochs for row in epoch)
    assert found == {
        **{(3, number): 2 if number in (3, 4, 5) else 1 for number in range(10)},
        **{(0, number): 1 for number in (3, 4, 5)},
    }


def test_a_file_that_goes_takes_only_its_last_rows_along(tmp_path: Path) -> None:
    path = filled(tmp_path)
    mark(tmp_path, path, vector(tmp_path, range(8)))
    follows = streaming(tmp_path, readChangeFeed="true")
    (end,) = offsets(follows)
    DeltaTable(tmp_path).delete("id = 8")
    ends = offsets(follows, start=end)
    found = [(row["$kind"], row["id"]) for row in rows(follows, end, ends[-1])]
    assert sorted(found) == [(0, 9), (3, 8), (3, 9)]


@pytest.mark.parametrize("kind", ["parts", "incomplete", "sidecars", "json"])
def test_vectors_are_found_in_every_kind_of_checkpoint(tmp_path: Path, kind: str) -> None:
    """Several parts, and files that name other ones; if a part is missing, in the commits."""
    path = filled(tmp_path)
    mark(tmp_path, path, vector(tmp_path, [1, 2]))
    opened = DeltaTable(tmp_path)
    opened.create_checkpoint()
    log = tmp_path / "_delta_log"
    (made,) = log.glob("*.checkpoint.parquet")
    (log / "_last_checkpoint").unlink()
    rest, stem = parquet.read_table(made), made.name.split(".")[0]
    made.unlink()
    if kind in ("parts", "incomplete"):
        for part in (1, 2)[: 2 if kind == "parts" else 1]:
            rows_of = rest.slice(0, 2) if part == 1 else rest.slice(2)
            parquet.write_table(rows_of, log / f"{stem}.checkpoint.{part:010d}.{2:010d}.parquet")
    else:
        (log / "_sidecars").mkdir()
        parquet.write_table(rest.select(["add"]), log / "_sidecars" / "one.parquet")
        named, name = {"path": "one.parquet"}, f"{stem}.checkpoint.{uuid.uuid4()}"
        if kind == "json":
            (log / f"{name}.json").write_text(json.dumps({"sidecar": named}) + "\n")
        else:
            parquet.write_table(pa.table({"sidecar": [named]}), log / f"{name}.parquet")
    if kind != "incomplete":  # as a cleanup leaves it
        for old in range(3):
            (log / f"{old:020d}.json").unlink()
    known = VectorLog(place=DeltaPlace(name="t", storage=Storage(str(tmp_path))))
    assert {at: found["cardinality"] for at, found in known.at(opened).items()} == {path: 2}
