"""Tables and columns of a savepoint by their readable names, from its records alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tidemill.catalog.table import CatalogTable, Column, ObjectPath
from tidemill.changelog.hashing import hash_columns
from tidemill.connectors.api import SourceRequest
from tidemill.errors import NotSupportedError, StateError, ValidationError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.epochs import EpochCommit
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.operator_schema import OperatorSchema
from tidemill.runtime.checkpoint.savepoint import Savepoint, Snapshot
from tidemill.runtime.state_tables.connector import CONNECTOR
from tidemill.runtime.state_tables.listings import LISTINGS
from tidemill.runtime.state_tables.naming import known_layout, operators_of, state_files
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore
from tidemill.types.logical import BIGINT, BOOLEAN, STRING, Field, LogicalType

SUMS, PLAIN, EMPTY = "group-aggregate-0123456789abcdef", "join-0123456789abcdef", "rank-0123456789abcdef"
KEY, TIME = pa.field("day#1", pa.int32()), pa.field("u#2", pa.timestamp("us"))
GROUPS = Layout(
    name="groups",
    keys=(KEY,),
    columns=(pa.field("SUM(v#3) SINCE 4", pa.decimal128(38, 2)), pa.field("bits", pa.uint8())),
    ttl=10,
)
DISTINCT = Layout(name="DISTINCT(u#2)", keys=(KEY,), values=(pa.field("$value0", TIME.type),), additive=True)
SIDE = Layout(
    name="left",
    keys=(pa.field("l0", pa.string()),),
    values=(pa.field("l1", pa.string()), pa.field("$since 7", pa.bool_())),
)
IDENTITY = JobIdentity(
    job_id="j",
    fingerprint="f",
    nodes={"fedcba": "Scan(a)", "0123456789abcdef": "A node"},
    operators={SUMS: "x", PLAIN: "x", EMPTY: "x"},
    schema={
        SUMS: OperatorSchema(
            kind="group-aggregate",
            text="GroupAggregate(groupBy=[day])",
            rows="",
            identity="",
            keys=("day#1",),
            tables={"groups": GROUPS.described, DISTINCT.name: DISTINCT.described},
            labels={"day#1": "day", "u#2": "seen", "v#3": "price * 2"},
            types={"day#1": "TIME(0) NOT NULL", "u#2": "TIMESTAMP(3) *ROWTIME*"},
        )
    },
)


def put(root: Path, operator: str, layout: Layout, columns: dict[str, pa.Array]) -> str:
    store = StateStore.open(str(root / "state"), operator, 0, None, 1)
    keys = [columns[f.name] for f in layout.keys]
    rows = len(keys[0])
    codes = layout.codes(hash_columns(keys, rows), [columns[f.name] for f in layout.values])
    store.table(layout).put(codes, columns)
    name = store.flush()
    assert name is not None
    return name


@pytest.fixture
def savepoint(tmp_path: Path) -> Savepoint:
    """Of a GROUP BY, a join that no schema describes, and an operator that has no rows."""
    sums = {"day#1": pa.array([1, 2], pa.int32()), "bits": pa.array([1, 255], pa.uint8())}
    side = {"l0": pa.array(["a"]), "l1": pa.array(["b"]), "$since 7": pa.array([True])}
    manifests = {
        SUMS: {"0": [[put(tmp_path / "job", SUMS, GROUPS, sums), 0, 4096]]},
        PLAIN: {"0": [[put(tmp_path / "job", PLAIN, SIDE, side), 0, 4096]]},
    }
    commit = EpochCommit(epoch=3, time=5, offsets={}, manifests=manifests, tokens={})
    target = Storage(str(tmp_path / "kept"))
    Snapshot(identity=IDENTITY, commit=commit, checkpoint=Storage(str(tmp_path / "job"))).write(target)
    return Savepoint.open(target)


def test_tables_and_columns_have_readable_names_and_flinks_types(savepoint: Savepoint) -> None:
    found = {t.name: t for o in operators_of(savepoint) for t in o.tables}
    assert list(found) == ["group_aggregate_1", "group_aggregate_1_distinct_seen", "join_1"]
    assert [(c.name, str(c.type), c.role, c.since) for c in found["group_aggregate_1"].columns] == [
        ("day", "TIME(0)", "key", 0),
        ("SUM(price * 2) SINCE 4", "DECIMAL(38, 2)", "payload", 4),
        ("bits", "SMALLINT", "payload", 0),
        ("written", "TIMESTAMP_LTZ(3)", "time", 0),
        ("partition_id", "INT", "partition", 0),
    ]
    # Nothing is stored in it yet: the schema tells of it.
    assert [(c.name, str(c.type)) for c in found["group_aggregate_1_distinct_seen"].columns] == [
        ("day", "TIME(0)"),
        ("seen", "TIMESTAMP(3)"),
        ("weight", "BIGINT"),
        ("partition_id", "INT"),
    ]
    assert [(c.name, str(c.type), c.role) for c in found["join_1"].columns] == [
        ("l0", "STRING", "key"),
        ("l1", "STRING", "value"),
        ("since_7", "BOOLEAN", "value"),
        ("partition_id", "INT", "partition"),
    ]


def test_listings_say_what_there_is(savepoint: Savepoint) -> None:
    operators = operators_of(savepoint)
    listed = {name: list(listing.rows(savepoint, operators)) for name, listing in LISTINGS.items()}
    assert [(r[0], r[2], r[3], *r[4:7]) for r in listed["operators"]] == [
        ("group_aggregate_1", "group-aggregate", "GroupAggregate(groupBy=[day])", 2, 1, 2),
        ("join_1", "join", "A node", 1, 1, 1),
        ("rank_1", "rank", "A node", 0, 0, 0),
    ]
    assert [row[1:5] for row in listed["sizes"]] == [("group_aggregate_1", 0, 1, 2), ("join_1", 0, 1, 1)]
    ((epoch, processed, _, job, _),) = listed["epochs"]
    assert (epoch, processed.timestamp(), job) == (3, 0.005, "j")
    for name, listing in LISTINGS.items():
        assert {len(row) for row in listed[name]} == {len(listing.fields)}


def request(savepoint: Savepoint, name: str, **columns: LogicalType) -> SourceRequest:
    table = CatalogTable(
        path=ObjectPath("c", "d", "t"),
        columns=tuple(Column(name=n, type=kind) for n, kind in columns.items()),
        options={},
    )
    return SourceRequest(
        table=table,
        options={"state.path": savepoint.where, "operator.uid": name},
        fields=tuple(Field(n, kind) for n, kind in columns.items()),
        metadata={},
        sequence=False,
        parallelism=1,
        time_zone="UTC",
        streaming=False,
    )


def test_a_declared_table_must_fit(savepoint: Savepoint) -> None:
    CONNECTOR.source(request(savepoint, "join_1", l0=STRING))
    with pytest.raises(
        ValidationError, match=r"Column 'l0' of table 'c.d.t' is STRING in the state, not BIGINT"
    ):
        CONNECTOR.source(request(savepoint, "join_1", l0=BIGINT))
    with pytest.raises(ValidationError, match=r"Column 'x' of table 'c.d.t' is not in the state"):
        CONNECTOR.source(request(savepoint, "join_1", x=BIGINT))
    with pytest.raises(ValidationError, match="There is no table 'nosuch' in the savepoint"):
        CONNECTOR.source(request(savepoint, "nosuch", x=BIGINT))


def test_rows_change_through_tables_with_all_columns(savepoint: Savepoint) -> None:
    whole = request(savepoint, "join_1", l0=STRING, l1=STRING, since_7=BOOLEAN)
    assert CONNECTOR.fixed_columns(whole.table, whole.options) == ("l0", "l1", "since_7", "partition_id")
    part = request(savepoint, "join_1", l0=STRING)
    with pytest.raises(NotSupportedError, match="the table lacks the column 'l1' of the state"):
        CONNECTOR.fixed_columns(part.table, part.options)
    about = request(savepoint, "operators", text=STRING)
    with pytest.raises(
        NotSupportedError, match="Rows of 'operators' cannot change: it is about the savepoint"
    ):
        CONNECTOR.fixed_columns(about.table, about.options)


def test_a_savepoint_that_is_not_whole_is_named(savepoint: Savepoint) -> None:
    (manifest,) = savepoint.manifests({SUMS: ""})
    Path(savepoint.where, "state", manifest).write_text("{}")
    with pytest.raises(StateError, match=f"of the savepoint '{savepoint.where}' is damaged"):
        CONNECTOR.source(request(savepoint, "join_1", l0=STRING))
    Path(savepoint.where, "savepoint.json").unlink()
    with pytest.raises(StateError, match=r"is not a savepoint: it has no 'savepoint.json'"):
        CONNECTOR.source(request(savepoint, "join_1", l0=STRING))


def test_files_outside_of_the_savepoint_are_not_read(savepoint: Savepoint) -> None:
    """Anybody may have made it."""
    commit = savepoint.commit
    assert commit is not None
    outside = replace(commit, manifests={SUMS: {"0": [["../../job/state/m", 0, 4096]]}})
    with pytest.raises(StateError, match="it is named, but does not lie in it"):
        operators_of(replace(savepoint, commit=outside))


def test_columns_that_the_query_has_lost_are_not_there(savepoint: Savepoint) -> None:
    """Manifests keep them; what the query has got since is NULL so far."""
    schema = IDENTITY.schema[SUMS]
    groups = {name: kind for name, kind in schema.tables["groups"].items() if name != "bits"}
    changed = replace(schema, tables={**schema.tables, "groups": {**groups, "COUNT(*)": "int64"}})
    identity = replace(IDENTITY, schema={SUMS: changed})
    operator = operators_of(replace(savepoint, identity=identity))[0]
    assert [c.name for c in operator.tables[0].columns if c.role == "payload"] == [
        "COUNT(*)",
        "SUM(price * 2) SINCE 4",
    ]
    layout = known_layout(state_files(savepoint), operator.tables[0])
    assert sorted(f.name for f in layout.columns) == ["COUNT(*)", "SUM(v#3) SINCE 4"]
    assert layout.ttl == 10


def test_older_savepoints_have_no_schema() -> None:
    old = Path(__file__).parents[1] / "recorded" / "savepoint-3"
    names = [o.name for o in operators_of(Savepoint.open(Storage(str(old))))]
    assert names == ["group_aggregate_1"]


def test_names_of_columns_never_repeat(savepoint: Savepoint) -> None:
    schema = replace(IDENTITY.schema[SUMS], labels={"day#1": "written", "u#2": "written"})
    identity = replace(IDENTITY, schema={SUMS: schema})
    named = operators_of(replace(savepoint, identity=identity))[0].tables[0].columns
    assert len({c.name for c in named}) == len(named)
    assert np.isin(["written", "written$"], [c.name for c in named]).all()
