"""Savepoints that earlier versions wrote (``record_savepoint``): jobs of this version continue from them."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.runtime.record_savepoint import NUMBERS, PACKED, ROWS, SINKS, statement_set
from tests.session.environments import ask, new_session
from tidemill.errors import StateError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.savepoint import Savepoint
from tidemill.session.environment import TableEnvironment
from tidemill.state.manifest import read_manifest
from tidemill.state.packing import unpacked_type
from tidemill.state.run import RunReader
from tidemill.state.storage import StateFiles

RECORDED = Path(__file__).parent / "recorded"
VALUES = {
    "savepoint-4": 10,
    "savepoint-5-manifests-3": 10,
    "savepoint-5-manifests-4": PACKED,
    "savepoint-5-manifests-5": PACKED,
}
STEPS = {"savepoint-5-manifests-5"}
"""Their job had the CUMULATE window, too."""
Rows = dict[str, list[tuple[Any, ...]]]


def channel(number: int) -> str:
    return f"a channel with a long name {number % 5}"


def written(name: str) -> str:
    return statement_set(VALUES[name], steps=name in STEPS)


def expected(name: str) -> Rows:
    """The rows of the sinks after all input."""
    values = VALUES[name]
    ids = range(1, ROWS + 1)
    counts, ends = Counter(n % 7 for n in ids), Counter((n // 36_000 + 1) * 36_000 for n in ids)
    most = {n % 9: n for n in ids}
    return {
        "sums": [
            (channel(c), len(own), len({n % values for n in own}), sum(own))
            for c in range(5)
            for own in [[n for n in ids if n % 5 == c]]
        ],
        "hours": [
            (f"1970-01-01 0{hour}:00:00", n, min(hour * 36_000 - 1, ROWS))
            for hour, n in enumerate(ends.values(), 1)
        ],
        "pairs": [(k, counts[k], most[k]) for k in range(7)],
        "steps": list(_steps(values)) if name in STEPS else [],
        "tops": [(k, r, [n for n in ids if n % 3 == k][-r]) for k in range(3) for r in (1, 2)],
    }


def _steps(values: int) -> Iterator[tuple[Any, ...]]:
    """Of each hour with rows its first half, and all of it."""
    for hour in range((ROWS - 1) // 36_000 + 1):
        for half in (1, 2):
            first, after = hour * 36_000, hour * 36_000 + half * 18_000
            ids = {n % values for n in range(max(first, 1), min(after, ROWS + 1))}
            ends = f"1970-01-01 0{hour}:30:00" if half == 1 else f"1970-01-01 0{hour + 1}:00:00"
            yield f"1970-01-01 0{hour}:00:00", ends, len(ids)


def test_which_runs_are_packed() -> None:
    """Else the recorded savepoints test nothing."""
    packed = {}
    for name in VALUES:
        files = StateFiles.open(Storage(str(RECORDED / name / "state")), name)
        held = Savepoint.open(Storage(str(RECORDED / name))).manifests()
        runs = [run for manifest in held for run in read_manifest(files, manifest).runs]
        schemas = [RunReader.of_run(files, run).table.schema for run in runs]
        packed[name] = sum(any(unpacked_type(f) != f.type for f in schema) for schema in schemas)
    assert packed == {
        "savepoint-4": 0,
        "savepoint-5-manifests-3": 0,
        "savepoint-5-manifests-4": 1,
        "savepoint-5-manifests-5": 2,
    }


@pytest.mark.every_case
@pytest.mark.parametrize("name", VALUES)
def test_a_job_goes_on(spark: SparkSession, tmp_path: Path, name: str) -> None:
    statement, wanted = written(name), expected(name)
    options = {}
    if name == "savepoint-4":
        # Window aggregations had two phases then; the other operators go on.
        with pytest.raises(StateError, match=f"The savepoint '.*{name}' belongs to another query"):
            session(tmp_path / "refused", name).execute_sql(statement)
        statement = re.sub(r" INSERT INTO hours .*?;", "", statement)
        wanted["hours"] = []
        options = {"execution__state_recovery__ignore_unclaimed_state": "true"}
    session(tmp_path, name, **options).execute_sql(statement).wait()
    assert shown(tmp_path) == wanted


@pytest.mark.parametrize("name", [name for name in VALUES if "-5-" in name])
def test_a_job_goes_on_with_another_query(spark: SparkSession, tmp_path: Path, name: str) -> None:
    changed = written(name).replace("COUNT(*) AS n, COUNT(DISTINCT", "0 AS n, COUNT(DISTINCT")
    wanted = expected(name)
    wanted["sums"] = [(c, 0, ids, total) for c, _, ids, total in wanted["sums"]]
    session(tmp_path, name).execute_sql(changed).wait()
    assert shown(tmp_path) == wanted


def session(root: Path, name: str, **options: str) -> TableEnvironment:
    """A session whose job continues from the recorded savepoint, with other sinks."""
    root.mkdir(exist_ok=True)
    made = new_session(
        table__dml_sync="true",
        parallelism__default="2",
        table__local_time_zone="UTC",
        execution__checkpointing__dir=str(root / "job"),
        execution__state_recovery__path=str(RECORDED / name),
        **options,
    )
    ask(made, NUMBERS)
    with sqlite3.connect(root / "db") as database:
        for table, columns in SINKS.items():
            declared = columns.replace("NOT ENFORCED", "")
            database.execute(f"CREATE TABLE {table} ({declared})")
            place = f"'connector'='jdbc', 'url'='jdbc:sqlite:{root}/db', 'table-name'='{table}'"
            ask(made, f"CREATE TABLE {table} ({columns}) WITH ({place})")
    return made


def shown(root: Path) -> Rows:
    with sqlite3.connect(root / "db") as database:
        return {name: database.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for name in SINKS}
