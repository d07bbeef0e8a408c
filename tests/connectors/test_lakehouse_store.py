"""Delta and Iceberg tables in an object store, by key: workers and both libraries find the same place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.connectors.lake import all_rows, batch, staged
from tests.connectors.sinks import sink
from tests.connectors.sources import source, table
from tests.object_store import bucket
from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import UPSERT
from tidemill.types import logical as t

ADD, REMOVE = 2, 3


def changed_in_two_epochs(into: CatalogTable) -> list[tuple[object, ...]]:
    """Rows 1 and 2, then 2 goes, and 1 and 3 come."""
    target = sink(into, kinds=UPSERT)
    epochs = ([(1, "old", ADD), (2, "old", ADD)], [(2, "old", REMOVE), (1, "new", ADD), (3, "x", ADD)])
    for epoch, changes in enumerate(epochs, 1):
        rows = [{"k": key, "v": value} for key, value, _ in changes]
        tokens = staged(target, batch(into, rows, [kind for _, _, kind in changes]), epoch=epoch)
        for _ in range(2):
            target.publish(epoch, tokens)
    target.finish()
    return sorted(tuple(row.values()) for row in all_rows(source(into)))


def test_a_delta_table_in_an_object_store(object_store: Mapping[str, str]) -> None:
    bucket(object_store, "delta-lake")
    options = {"connector": "delta", "table-path": "s3a://delta-lake/t", **object_store}
    into = table({"k": t.BIGINT, "v": t.STRING}, options, primary_key=("k",))
    assert changed_in_two_epochs(into) == [(1, "new"), (3, "x")]


def test_an_iceberg_table_in_an_object_store(object_store: Mapping[str, str], tmp_path: Path) -> None:
    bucket(object_store, "iceberg-lake")
    place = {"warehouse": "s3://iceberg-lake/house", "uri": f"sqlite:///{tmp_path}/catalog.db"}
    options = {"connector": "iceberg", **place, **object_store}
    into = table({"k": t.BIGINT, "v": t.STRING}, options, primary_key=("k",))
    assert changed_in_two_epochs(into) == [(1, "new"), (3, "x")]
