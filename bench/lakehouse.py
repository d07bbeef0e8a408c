"""Delta tables: appends beside deltalake's own writer, and upserts, an epoch each, beside its merge.

`python -m bench.lakehouse --rows 10000000 --keys 100000`: no Spark, one process; the sink's own steps (stage,
publish) with a task for each part of the input, one after the other, where deltalake uses all processors. The
merge gets the same rows. Ratios of one run count, not seconds. ``random``: keys from all of the table;
``new``: keys that it does not have; ``recent``: those that were written last. Each goes into a table whose
files are written anew, and into one with deletion vectors.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tidemill.catalog.table import CatalogTable, Column, ObjectPath
from tidemill.changelog.rowkind import INSERT_ONLY, KIND_COLUMN, UPSERT, RowKind
from tidemill.connectors.api import SinkRequest
from tidemill.connectors.delta.vectors import PROPERTY
from tidemill.connectors.registry import connector
from tidemill.types import logical as t
from tidemill.types.logical import Field

COLUMNS = {"id": t.BIGINT, "account": t.BIGINT, "amount": t.DOUBLE, "name": t.STRING}
_TASKS = 4


def declared(root: Path, *, keyed: bool, vectors: bool = False) -> CatalogTable:
    more = {PROPERTY: "true"} if vectors else {}
    return CatalogTable(
        path=ObjectPath("bench", "lake", "t"),
        columns=tuple(Column(name=name, type=kind) for name, kind in COLUMNS.items()),
        options={"connector": "delta", "table-path": str(root), **more},
        primary_key=("id",) if keyed else (),
    )


def made(ids: np.typing.NDArray[np.int64], salt: int) -> pa.Table:
    return pa.table(
        {
            "id": ids,
            "account": ids * 7919 % 100_003,
            "amount": (ids * 31 + salt) / 7,
            "name": pa.array([f"name {n}" for n in range(1000)]).take(pa.array((ids + salt) % 1000)),
        }
    )


def written(into: CatalogTable, rows: pa.Table, epoch: int, kinds: frozenset[RowKind]) -> None:
    target: Any = connector(into.options).sink(
        SinkRequest(
            table=into,
            options=into.options,
            fields=tuple(Field(c.name, c.type) for c in into.columns),
            kinds=kinds,
            job_id="bench",
            overwrite=False,
            static_partition={},
            time_zone="UTC",
            streaming=True,
        )
    )
    if kinds != INSERT_ONLY:
        rows = rows.append_column(KIND_COLUMN, pa.array(np.full(len(rows), 2, np.int8)))
    step = -(-len(rows) // _TASKS)
    tokens = []
    for start in range(0, len(rows), step):
        batches = rows.slice(start, step).combine_chunks().to_batches()
        tokens += [out.column(0)[0].as_py() for out in target.stager(epoch)(batches)]
    target.publish(epoch, tokens)


def merged(root: Path, rows: pa.Table) -> None:
    merge = DeltaTable(root).merge(rows, predicate="s.id = t.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds by the clock, and of processors: those of all threads, as the machine may have other work."""

    clock: float
    processors: float

    def __str__(self) -> str:
        return f"{self.clock:.2f} s ({self.processors:.2f} s of processors)"


def timed(action: Callable[[], object]) -> Took:
    clock, processors = time.perf_counter(), time.process_time()
    action()
    return Took(time.perf_counter() - clock, time.process_time() - processors)


def middle(found: list[Took]) -> Took:
    return sorted(found, key=lambda took: took.processors)[len(found) // 2]


def compared(what: str, theirs: Took, ours: Took) -> None:
    clock, processors = theirs.clock / ours.clock, theirs.processors / ours.processors
    print(f"{what}: deltalake {theirs}, ours {ours}: {clock:.1f} times as fast", end="", flush=True)
    print(f", {processors:.1f} times less of processors", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=3, help="of each kind of keys; the middle one counts")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tidemill-lake-"))
    try:
        run(folder, given.rows, given.keys, given.epochs)
    finally:
        shutil.rmtree(folder)


def run(folder: Path, count: int, keys: int, epochs: int) -> None:
    rows = made(np.arange(count), 0)
    plain = declared(folder / "plain", keyed=False)
    keyed = {
        "files": declared(folder / "keyed", keyed=True),
        "vectors": declared(folder / "vectors", keyed=True, vectors=True),
    }
    theirs = timed(lambda: write_deltalake(folder / "theirs", rows))
    ours = timed(lambda: written(plain, rows, 1, INSERT_ONLY))
    compared(f"append of {count:,} rows", theirs, ours)
    for into in keyed.values():
        written(into, rows, 1, UPSERT)
    generator, epoch = np.random.default_rng(1), 1
    new = [np.arange(count + n * keys, count + (n + 1) * keys) for n in range(epochs)]
    cases = {
        "random": [generator.choice(count, keys, replace=False) for _ in range(epochs)],
        "new": new,
        "recent": new,
    }
    for name, groups in cases.items():
        merges = []
        upserts: dict[str, list[Took]] = {how: [] for how in keyed}
        for ids in groups:
            epoch += 1
            changes = made(ids, epoch)
            merges.append(timed(partial(merged, folder / "plain", changes)))
            for how, into in keyed.items():
                upserts[how].append(timed(partial(written, into, changes, epoch, UPSERT)))
        for how, took in upserts.items():
            what = f"upsert of {keys:,} {name} keys into {count:,} rows, {how}"
            compared(what, middle(merges), middle(took))


if __name__ == "__main__":
    main()
