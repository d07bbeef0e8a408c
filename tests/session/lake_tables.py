"""Delta and Iceberg tables without a key for tests of DELETE and UPDATE, read back by their own libraries."""

from __future__ import annotations

from itertools import compress, repeat
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet
from pyiceberg.table import Table

from tests.connectors.delta_vectors import PROPERTY
from tests.connectors.lake import batch, staged
from tests.connectors.sinks import sink
from tests.session.environments import ask, new_session
from tidemill.catalog.table import CatalogTable
from tidemill.connectors.formats.columnar.tables import to_file_table
from tidemill.connectors.iceberg.catalogs import catalog_of
from tidemill.session.environment import TableEnvironment
from tidemill.types.logical import Field

Row = dict[str, Any]
KINDS = ("delta", "vectors", "iceberg")
"""``vectors``: a Delta table with deletion vectors."""
PLACES = {
    "delta": "'connector'='delta', 'table-path'='{root}'",
    "vectors": f"'connector'='delta', 'table-path'='{{root}}', '{PROPERTY}'='true'",
    "iceberg": "'connector'='iceberg', 'warehouse'='{root}'",
}


def session(kind: str, root: Path, columns: str, *, by: str = "", **more: str) -> TableEnvironment:
    """With the table ``t`` in the folder."""
    made = new_session(execution__runtime_mode="batch")
    parts = f" PARTITIONED BY ({by})" if by else ""
    given = PLACES[kind].format(root=root)
    given += "".join(f", '{key}'='{value}'" for key, value in more.items())
    ask(made, f"CREATE TABLE t ({columns}){parts} WITH ({given})")
    return made


def declared(made: TableEnvironment) -> CatalogTable:
    found = made.context.catalogs.find(made.context.catalogs.qualify(("t",)))
    assert isinstance(found, CatalogTable)
    return found


def append(made: TableEnvironment, *tasks: list[Row], job: str = "job") -> None:
    """A version with a file of each task, or several if the table has partitions; without Spark."""
    into = declared(made)
    target = sink(into, job=job)
    target.publish(1, staged(target, *(batch(into, task) for task in tasks)))


def append_by_library(kind: str, root: Path, made: TableEnvironment, rows: list[Row]) -> None:
    """As another writer does."""
    into = declared(made)
    fields = tuple(Field(c.name, c.type) for c in into.physical_columns)
    found = to_file_table(pa.Table.from_batches([batch(into, rows)]), fields)
    if kind != "iceberg":
        write_deltalake(root, found, mode="append")
    else:
        iceberg(root).append(found)


def iceberg(root: Path) -> Table:
    return catalog_of("iceberg", {"warehouse": str(root)}).load_table("default.t")


def version(kind: str, root: Path) -> int:
    if kind != "iceberg":
        return int(DeltaTable(root).version())
    snapshot = iceberg(root).current_snapshot()
    assert snapshot is not None
    return int(snapshot.snapshot_id)


def stored(kind: str, root: Path, at: int | None = None) -> list[Row]:
    """The rows of a version, by the format's library."""
    if kind != "iceberg":
        opened = DeltaTable(root, version=at)
        return pa.RecordBatchReader.from_stream(opened.scan()).read_all().to_pylist()  # type: ignore[no-any-return]
    return iceberg(root).scan(snapshot_id=at).to_arrow().to_pylist()  # type: ignore[no-any-return]


def files(kind: str, root: Path) -> dict[str, list[int]]:
    """The ids that the table has in each file of the newest version."""
    live: dict[str, list[bool]] = {}
    if kind != "iceberg":
        uris = [uri.removeprefix("file://") for uri in DeltaTable(root).file_uris()]
        paths = {uri: _unquoted(uri) for uri in uris}
        for part in pa.RecordBatchReader.from_stream(DeltaTable(root).deletion_vectors()):
            for one in part.to_pylist():
                live[one["filepath"].removeprefix("file://")] = one["selection_vector"]
    else:
        tasks = iceberg(root).scan().plan_files()
        paths = {t.file.file_path: t.file.file_path.removeprefix("file://") for t in tasks}
    found = {name: _ids(path) for name, path in paths.items()}
    return {name: list(compress(ids, live.get(name, repeat(True)))) for name, ids in found.items()}


def _unquoted(uri: str) -> str:
    return uri if Path(uri).exists() else unquote(uri)


def _ids(path: str) -> list[int]:
    return parquet.ParquetFile(path).read(columns=["id"]).column("id").to_pylist()  # type: ignore[no-any-return]
