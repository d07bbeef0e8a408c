"""Sessions in a savepoint are edited: the job goes on as one of which the rows had been so."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.operators import differential_session_aggregate as sessions
from tests.operators.differential_session_aggregate import Naive, Row, Session
from tests.runtime.state_tables.partitioned_job import PartitionedJob, edited, rows_of, sink, state_of
from tests.tiers import examples
from tidemill.changelog.watermarks import END, NONE
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import NotSupportedError
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.window.session import SessionAggregateSpec
from tidemill.operators.window.store.partial_aggregates import END as WINDOW

GAP, TABLE = 5, "window_aggregate_1"
_COUNT = AggregateSpec(function="COUNT", name="n", args=(), arg_types=(), result=pa.int64())
CALLS = (_COUNT, *sessions.SHAPES["accumulated"][0][1:])
Numbered = list[tuple[int, Row]]


def spec() -> SessionAggregateSpec:
    made = sessions.spec_of(CALLS, (("k", pa.string()),), False)
    assert isinstance(made, SessionAggregateSpec)
    return made


def shown(output: pa.Table) -> list[tuple[Any, ...]]:
    names = ["ws", "we", *(c.name for c in CALLS)]
    columns = [output.column(n).cast(pa.int64()).to_pylist() for n in names]
    keys = output.column("k").to_pylist()
    return [(k, ws // 1000, we // 1000, *rest) for k, ws, we, *rest in zip(keys, *columns, strict=True)]


def record(made: SessionAggregateSpec, rows: list[Row], name: int | None) -> dict[str, Any]:
    """A session of ``rows`` as a row of its table, by stored names."""
    table = sessions.table_of(list(enumerate(rows)), False)
    pieces = made.pieces.cut(table.append_column(WINDOW, pa.array([0] * len(rows), pa.int64())))
    (found,) = pieces.drop_columns([WINDOW]).to_pylist()
    bounds = {"$start": min(r.time for r in rows), "$last": max(r.time for r in rows) + GAP}
    return {**found, "$session": name, **bounds}


def drawn_session(data: st.DataObject, key: str | None, around: int) -> Session:
    """Rows of a key that are one session, some time ``around``."""
    time, rows = around + data.draw(st.sampled_from([0, 2, 7, 20, 40, -5])), list[Row]()
    for _ in range(data.draw(st.integers(1, 3))):
        rows.append(Row(key, time, data.draw(st.integers(0, 3)), NONE))
        time += data.draw(st.integers(0, GAP))
    return Session(rows[0].time, rows[-1].time + GAP, rows)


def touches(session: Session, others: list[Session]) -> bool:
    return any(o.start <= session.end and o.end >= session.start for o in others)


@settings(max_examples=examples(40), deadline=None)
@given(rows=sessions.arrivals(), cut=st.integers(0, 20), data=st.data())
def test_a_job_goes_on_as_if_its_sessions_had_been_so(rows: list[Row], cut: int, data: st.DataObject) -> None:
    """Some sessions are deleted, some get other rows, some are new; refused are those that touch others, and
    those that are over. In other partitions before, meanwhile and after."""
    rows = [row for row in rows if row.weight > 0]
    naive, made = Naive(CALLS), spec()
    cut = min(cut, len(rows))
    partitions = data.draw(st.tuples(*[st.sampled_from([1, 3])] * 2))
    for row in rows[:cut]:
        naive.reach(row.mark)
        naive.add(row)
    mark = rows[cut].mark if cut < len(rows) else max((r.mark for r in rows), default=NONE)
    naive.reach(mark)
    with TemporaryDirectory() as place:
        root = Path(place)
        job = PartitionedJob(root / "job", made, ("k",), partitions[0])
        found = shown(job.step(sessions.table_of(list(enumerate(rows))[:cut], False), mark))
        savepoint = job.savepoint(root / "old", gap=GAP)
        held = {(r["k"], r["session_start"]): r for r in rows_of(savepoint, TABLE)}
        assert {(k, s.start, s.end) for k, own in naive.open.items() for s in own} == {
            (r["k"], r["session_start"], r["session_end"]) for r in held.values()
        }
        if not held:
            return
        written, gone, refused = list[dict[str, Any]](), set[int](), False
        for (key, start), own_row in sorted(held.items(), key=repr):
            what = data.draw(st.sampled_from(["keep", "delete", "change"]))
            (old,) = (s for s in naive.open[key] if s.start == start)
            if what == "keep":
                continue
            naive.open[key].remove(old)
            if what == "delete":
                gone.add(len(written))
                written.append(record(made, old.rows, own_row["session"]))
            else:
                other = drawn_session(data, key, start)
                written.append(record(made, other.rows, own_row["session"]))
                naive.open[key].append(other)
        for key in data.draw(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=2)):
            new = drawn_session(data, key, max(mark, -20))
            written.append(record(made, new.rows, None))
            naive.open.setdefault(key, []).append(new)
        for own in naive.open.values():
            for number, session in enumerate(own):
                refused |= touches(session, own[:number]) or session.end - 1 <= mark
        editing = sink(savepoint, root / "new", TABLE, deletes=True)
        if refused:
            event("refused")
            with pytest.raises(WorkerError, match=r"breaks the state: column 'session_(end|start)'"):
                edited(editing, written, gone)
            return
        event("written" if written else "nothing to write")
        job = job.going_on(edited(editing, written, gone), root / "new", partitions[1])
        for row in rows[cut:]:
            naive.reach(row.mark)
            naive.add(row)
        naive.reach(END)
        cuts = sorted(data.draw(st.lists(st.integers(cut, len(rows)), max_size=2)))
        for first, last in pairwise([cut, *cuts, len(rows)]):
            reached = max((r.mark for r in rows[: last + 1]), default=NONE)
            found += shown(job.step(sessions.table_of(list(enumerate(rows))[first:last], False), reached))
        found += shown(job.step(sessions.table_of([], False), END))
        assert sorted(found, key=repr) == sorted(naive.fired, key=repr)
        assert job.late == naive.late


def a_savepoint(root: Path, *times: int, mark: int = 0) -> tuple[SessionAggregateSpec, PartitionedJob, Any]:
    made = spec()
    job = PartitionedJob(root / "job", made, ("k",), 1)
    rows = [Row("a", time, 1, NONE) for time in times]
    job.step(sessions.table_of(list(enumerate(rows)), False), mark)
    return made, job, job.savepoint(root / "old", gap=GAP)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"$start": 21}, r"column 'session_end' must be 5 ms or more after 'session_start'"),
        ({"$start": 10}, r"column 'session_end' must be 5 ms after the start of one row"),
        ({"$last": None}, r"column 'session_end' must not be NULL"),
        ({"$session": 77}, r"column 'session' is not that of an open session of its key"),
        ({"COUNT(*)": 0}, r"column 'COUNT\(\*\)' must be 1 or more"),
        ({"$session": None, "$start": 25, "$last": 30}, "column 'session_start' touches another session"),
        ({"$session": None, "$start": -4, "$last": 1}, "column 'session_end' has passed"),
        ({"k": "b", "$start": -4, "$last": 2}, r"column 'session' is not that of an open session"),
    ],
)
def test_what_breaks_the_sessions_of_a_key_is_named(tmp_path: Path, changed: Any, why: str) -> None:
    made, _, savepoint = a_savepoint(tmp_path, 20)
    ((row),) = rows_of(savepoint, TABLE)
    base = record(made, [Row("a", 20, 1, NONE)], row["session"])
    with pytest.raises(WorkerError, match=why):
        edited(sink(savepoint, tmp_path / "new", TABLE), [{**base, **changed}])
    assert not (tmp_path / "new").exists()


def test_two_new_sessions_of_a_key_may_not_touch(tmp_path: Path) -> None:
    made, _, savepoint = a_savepoint(tmp_path, 20)
    new = [record(made, [Row("b", time, 1, NONE)], None) for time in (10, 15)]
    with pytest.raises(WorkerError, match="column 'session_start' touches another session of its key"):
        edited(sink(savepoint, tmp_path / "new", TABLE), new)


def test_an_edit_of_an_edit_gives_other_names(tmp_path: Path) -> None:
    """Both are of the same epoch; a session that is deleted and one that is new are not mixed up."""
    made, job, savepoint = a_savepoint(tmp_path, 20)
    for number, time in enumerate((40, 60)):
        new = [record(made, [Row("a", time, number, NONE)], None)]
        savepoint = edited(sink(savepoint, tmp_path / f"{number}", TABLE), new)
    names = {row["session"] for row in rows_of(savepoint, TABLE)}
    assert len(names) == 3
    job = job.going_on(savepoint, tmp_path / "1", 3)
    assert [row[1] for row in sorted(shown(job.step(sessions.table_of([], False), END)))] == [20, 40, 60]


def test_sessions_that_are_more_than_accumulators_are_read_alone(tmp_path: Path) -> None:
    """And those of a savepoint that does not say the gap."""
    _, job, _ = a_savepoint(tmp_path, 20)
    old = job.savepoint(tmp_path / "without")
    assert {c.name for c in state_of(old, TABLE)[1].columns}.isdisjoint({"session_start", "session_end"})
    with pytest.raises(NotSupportedError, match="Rows of 'window_aggregate_1', a table of windows, cannot"):
        sink(old, tmp_path / "new", TABLE)
    made = sessions.spec_of(sessions.SHAPES["collected"][0], (("k", pa.string()),), False)
    collected = PartitionedJob(tmp_path / "c", made, ("k",), 1)
    collected.step(sessions.table_of([(0, Row("a", 3, 1, NONE))], False), 0)
    savepoint = collected.savepoint(tmp_path / "cs", gap=GAP)
    ((row),) = rows_of(savepoint, TABLE)
    assert (row["session_start"], row["session_end"], row["weight"]) == (3, 8, 1)
    with pytest.raises(NotSupportedError, match="Rows of 'window_aggregate_1', a table of windows, cannot"):
        sink(savepoint, tmp_path / "new", TABLE)
