"""Delta and Iceberg tables in an object store: workers and both libraries find the same place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.connectors.delta_vectors import PROPERTY
from tests.connectors.lake import all_rows, batch, staged
from tests.connectors.sinks import sink
from tests.connectors.sources import source, table
from tests.object_store import bucket, faulty_server
from tests.session.environments import ask, new_session
from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import UPSERT
from tidemill.connectors.delta.log import log_path
from tidemill.connectors.delta.table import DeltaPlace
from tidemill.connectors.lakehouse import commits
from tidemill.errors import CommitUnknownError, ConnectorError
from tidemill.files import systems
from tidemill.files.storage import Storage
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


def test_deletion_vectors_in_an_object_store(object_store: Mapping[str, str]) -> None:
    bucket(object_store, "delta-vectors")
    place = {"table-path": "s3a://delta-vectors/t", PROPERTY: "true", "sink.buckets": "1"}
    options = {"connector": "delta", **place, **object_store}
    into = table({"k": t.BIGINT, "v": t.STRING}, options, primary_key=("k",))
    target = sink(into, kinds=UPSERT)
    for epoch, (keys, kind) in enumerate([(range(10), ADD), ([3], REMOVE), ([5], REMOVE)], 1):
        rows = [{"k": key, "v": "x"} for key in keys]
        target.publish(epoch, staged(target, batch(into, rows, [kind] * len(rows)), epoch=epoch))
    assert [row["k"] for row in all_rows(source(into))] == [0, 1, 2, 4, *range(6, 10)]
    stored = Storage.configured("s3a://delta-vectors/t", options).files(recursive=False)
    assert len([file for file in stored if file.path.startswith("deletion_vector_")]) == 2


def test_an_iceberg_table_in_an_object_store(object_store: Mapping[str, str], tmp_path: Path) -> None:
    bucket(object_store, "iceberg-lake")
    place = {"warehouse": "s3://iceberg-lake/house", "uri": f"sqlite:///{tmp_path}/catalog.db"}
    options = {"connector": "iceberg", **place, **object_store}
    into = table({"k": t.BIGINT, "v": t.STRING}, options, primary_key=("k",))
    assert changed_in_two_epochs(into) == [(1, "new"), (3, "x")]


@pytest.mark.every_case
@pytest.mark.parametrize("feed", [False, True])
def test_rows_without_a_key_in_a_delta_table(
    object_store: Mapping[str, str], spark: object, feed: bool
) -> None:
    """With a change feed the version's file of the log is put by a request under a condition."""
    name = f"delta-rows-{feed}".lower()
    bucket(object_store, name)
    rows_change({"connector": "delta", "table-path": f"s3a://{name}/t", **object_store}, feed=feed)


def test_rows_without_a_key_in_an_iceberg_table(
    object_store: Mapping[str, str], spark: object, tmp_path: Path
) -> None:
    bucket(object_store, "iceberg-rows")
    place = {"warehouse": "s3://iceberg-rows/house", "uri": f"sqlite:///{tmp_path}/catalog.db"}
    rows_change({"connector": "iceberg", **place, **object_store})


@pytest.mark.thorough
@pytest.mark.parametrize("connector", ["delta", "iceberg"])
def test_a_store_that_fails_anywhere_in_an_epoch_has_it_once(
    connector: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers 500 from any change of the store on, although it has made that change; then it is back, and
    another process publishes the epoch again."""
    monkeypatch.setattr(commits, "_PATIENCE", 1)
    monkeypatch.setattr(systems, "ATTEMPTS", 2)
    with faulty_server() as (settings, faults):
        bucket(settings, "faulty")
        places = {
            "delta": {"table-path": "s3a://faulty/t"},
            "iceberg": {"warehouse": "s3://faulty/house", "uri": f"sqlite:///{tmp_path}/catalog.db"},
        }
        options = {"connector": connector, **places[connector], **settings}
        into = table({"k": t.BIGINT, "v": t.STRING}, options, primary_key=("k",))
        failures = []
        for passes in range(6):
            target, epoch = sink(into, kinds=UPSERT), passes + 1
            rows = [{"k": 0, "v": str(epoch)}, {"k": epoch, "v": "new"}]
            tokens = staged(target, batch(into, rows, [ADD, ADD]), epoch=epoch)
            faults.passes, faults.lost_answers = passes, 10**6
            try:
                target.publish(epoch, tokens)
            except (ConnectorError, CommitUnknownError) as e:
                failures.append(e.message)
            faults.passes, faults.lost_answers = 0, 0
            sink(into, kinds=UPSERT).publish(epoch, tokens)
        assert failures
        assert all(
            ("'t'" in message or "faulty" in message) and "\x1b" not in message for message in failures
        )
        assert sorted(tuple(row.values()) for row in all_rows(source(into))) == [
            (0, "6"),
            *((n, "new") for n in range(1, 7)),
        ]
        faults.down = True
        with pytest.raises(ConnectorError, match="500"):
            all_rows(source(into))


def rows_change(options: Mapping[str, str], *, feed: bool = False) -> None:
    made = new_session(execution__runtime_mode="batch")
    given = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    place = _place(options)
    if feed:
        schema = pa.schema([(name, pa.string() if name != "k" else pa.int64()) for name in "kvp"])
        feeds = {"delta.enableChangeDataFeed": "true"}
        storage = place._options
        DeltaTable.create(
            place._uri, schema, partition_by=["p"], configuration=feeds, storage_options=storage
        )
    ask(
        made,
        f"CREATE TABLE t (k BIGINT, v STRING, p STRING) PARTITIONED BY (p) WITH ({given})",
        "INSERT INTO t VALUES (1, 'a', 'x y'), (2, 'b', 'x y'), (3, 'c', 'z')",
    )
    ask(made, "UPDATE t SET v = 'new', p = 'z' WHERE k = 1", "DELETE FROM t WHERE p = 'z' AND k = 3")
    assert sorted(ask(made, "SELECT * FROM t")) == [(1, "new", "z"), (2, "b", "x y")]
    if feed:
        lines = place.storage.read_bytes(log_path(int(place.opened().version()))).splitlines()
        assert sum("cdc" in json.loads(line) for line in lines) == 1


def _place(options: Mapping[str, str]) -> DeltaPlace:
    settings = tuple((key, value) for key, value in options.items() if key.startswith("s3."))
    return DeltaPlace(name="t", storage=Storage(options.get("table-path", ""), settings))
