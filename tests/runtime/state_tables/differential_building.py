"""State built of rows against state of a kernel that has read these rows: later epochs are the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators import differential_interval_join as intervals
from tests.operators import differential_join as joins
from tests.operators import differential_over as overs
from tests.operators import differential_rank as ranks
from tests.operators.epochs import Epochs, as_change
from tests.operators.naive_aggregate import freeze
from tests.operators.naive_join import Row
from tests.tiers import examples
from tidemill.changelog.watermarks import NONE
from tidemill.connectors.worker_errors import WorkerError
from tidemill.files.storage import Storage
from tidemill.operators.api import EpochContext, OperatorSpec, TakesRows
from tidemill.operators.changelog_normalize import ChangelogNormalizeSpec
from tidemill.operators.over.operator import OverFunction, OverSpec
from tidemill.operators.rank.operator import RankSpec
from tidemill.runtime.state_tables.intake import Intake
from tidemill.runtime.state_tables.writer import StateWriter, TableRules, hashed_by_keys
from tidemill.state.slices import Slice, key_groups
from tidemill.state.store import StateStore

PARTITIONS = 3
NOW = 5


def built(
    root: str, spec: TakesRows, tables: Sequence[pa.Table], keys: Sequence[tuple[str, ...]]
) -> tuple[Slice, ...]:
    """The state of ``spec`` made of a table per input, in several partitions. ``keys``: of each input."""
    held: dict[int, Slice] = {}
    for port, (rows, hashed) in enumerate(zip(tables, keys, strict=True)):
        layout = spec.kept_rows.layouts[port]
        hidden = {"$seq", "$weight", "$count"}
        columns = tuple(c for c in rows.column_names if c not in hidden)
        intake = Intake(operator=spec, port=port, layout=layout, columns=columns, keys=hashed)
        parts = [
            (
                n,
                *key_groups(n, PARTITIONS),
                ((held[n].manifest, held[n].first, held[n].stop),) if n in held else (),
            )
            for n in range(PARTITIONS)
        ]
        writer = StateWriter(
            root=Storage(root),
            operator="op",
            shown="table",
            rules=TableRules(layout=layout, intake=intake),
            names={},
            parts=tuple(parts),
            columns=tuple(rows.column_names),
            epoch=1,
            now=NOW,
        )
        for batch in writer.write(writer.route(rows.combine_chunks().to_batches())):
            for token in map(json.loads, batch.column(0).to_pylist()):
                if token["manifest"] is not None:
                    held[token["part"]] = Slice(token["manifest"], *token["groups"])
    slices = tuple(sorted(held.values(), key=lambda s: s.first))
    store = StateStore.open(root, "op", 0, slices, 2, now=NOW)
    for layout in spec.kept_rows.layouts:
        if not layout.by_time:
            # An edit finds the rows by these.
            assert hashed_by_keys(store.table(layout).everything(), layout)
    return slices


def counted(rows: pa.Table, times: str) -> pa.Table:
    """The rows with how often each is there."""
    kept, counts = dict[Any, Any](), Counter[Any]()
    for row in rows.to_pylist():
        key = tuple(map(freeze, row.values()))
        kept.setdefault(key, row)
        counts[key] += 1
    whole = pa.Table.from_pylist(list(kept.values()), schema=rows.schema)
    return whole.append_column(times, pa.array([counts[key] for key in kept], pa.int64()))


history = st.lists(st.tuples(st.integers(0, 1), joins.rows_strategy), max_size=12)


@pytest.mark.parametrize("kind", joins.KINDS)
@pytest.mark.parametrize("keys", joins.KEYS)
@settings(max_examples=examples(10), deadline=None)
@given(
    before=history,
    cuts=joins.cuts_strategy,
    residual=st.booleans(),
    retracts=st.booleans(),
    weighted=st.booleans(),
    ttls=st.sampled_from([(0, 0), (3, 3), (4, 0), (0, 4)]),
)
def test_a_join_goes_on_as_one_that_read_the_rows(
    kind: str,
    keys: str,
    before: list[tuple[int, Row]],
    cuts: Any,
    residual: bool,
    retracts: bool,
    weighted: bool,
    ttls: tuple[int, int],
) -> None:
    spec = joins.spec_of(kind, keys, residual, retracts)
    spec = replace(spec, left=replace(spec.left, ttl=ttls[0]), right=replace(spec.right, ttl=ttls[1]))
    live: tuple[list[Row], list[Row]] = ([], [])
    for side, row in before:
        live[side].append(row)
    given_rows = [[(0, row) for row in rows] for rows in live]
    tables = [joins.table_of(s, given_rows[s], False, False, keys) for s in (0, 1)]
    times = "$count" if spec.expires else "$weight"
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        read = Epochs(one, spec, number=1)
        read.step(*(joins.table_of(s, given_rows[s], retracts, False, keys) for s in (0, 1)), time=NOW)
        counts = [counted(t, times) for t in tables] if weighted else tables
        slices = built(other, spec, counts, [side.keys for side in spec.sides])
        went_on = Epochs(other, spec, slices, number=2)
        for time, cut in enumerate(cuts, start=NOW + 1):
            changes: tuple[list[tuple[int, Row]], ...] = ([], [])
            for side, drawn in cut:
                changes[side].extend(joins.changes_of(live[side], drawn, retracts))
            later = [joins.table_of(s, changes[s], retracts, False, keys) for s in (0, 1)]
            assert Counter(went_on.step(*later, time=time)) == Counter(read.step(*later, time=time))


def rank_spec(
    function: str, order: str, start: int, end: int | None, retracts: bool, **more: Any
) -> RankSpec:
    return RankSpec(
        function=function,
        columns=ranks.COLUMNS,
        partition=("k",),
        order=ranks.ORDERS[order],
        start=start,
        end=end,
        rank="place",
        retracts=retracts,
        **more,
    )


@pytest.mark.parametrize("function", ["ROW_NUMBER", "RANK", "DENSE_RANK"])
@pytest.mark.parametrize(("start", "end"), [(1, 3), (2, 2), (1, None)])
@settings(max_examples=examples(10), deadline=None)
@given(
    before=st.lists(ranks.rows_strategy, max_size=12),
    cuts=ranks.actions,
    order=st.sampled_from(["number", "text-down", "float"]),
    retracts=st.booleans(),
    weighted=st.booleans(),
    ttl=st.sampled_from([0, 4]),
)
def test_a_top_n_goes_on_as_one_that_read_the_rows(
    function: str,
    start: int,
    end: int | None,
    before: list[ranks.Row],
    cuts: Any,
    order: str,
    retracts: bool,
    weighted: bool,
    ttl: int,
) -> None:
    """The places that the query gives say which of equal rows came first."""
    spec, live = rank_spec(function, order, start, end, retracts, state_ttl=ttl), list(before)
    rows = ranks.table_of([(0, row) for row in before], 100, False, False)
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        read = Epochs(one, spec, number=1)
        read.step(ranks.table_of([(0, row) for row in before], 0, retracts, False), time=NOW)
        given_rows = counted(rows, "$count" if ttl else "$weight") if weighted else rows
        went_on = Epochs(other, spec, built(other, spec, [given_rows], [("k",)]), number=2)
        seq = len(before)
        for time, cut in enumerate(cuts, start=NOW + 1):
            changes = [c for action in cut for c in ranks.changes_of(action, live, retracts)]
            later = ranks.table_of(changes, seq, retracts, False)
            seq += len(changes)
            assert went_on.step(later, time=time) == read.step(later, time=time)


@pytest.mark.parametrize("latest", [False, True])
@pytest.mark.parametrize("order", ["number", "text-down", "arrival"])
@settings(max_examples=examples(10), deadline=None)
@given(before=st.lists(ranks.rows_strategy, max_size=8), cuts=ranks.actions, ttl=st.sampled_from([0, 4]))
def test_deduplication_goes_on_as_one_that_read_the_rows(
    latest: bool, order: str, before: list[ranks.Row], cuts: Any, ttl: int
) -> None:
    first = {row[0]: row for row in reversed(before)}
    spec = rank_spec("ROW_NUMBER", order, 1, 1, False, latest=latest, state_ttl=ttl)
    changes = [(0, row) for row in first.values()]
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        read = Epochs(one, spec, number=1)
        read.step(ranks.table_of(changes, 0, False, False), time=NOW)
        rows = ranks.table_of(changes, 0, False, False).drop_columns(["$seq"])
        went_on = Epochs(other, spec, built(other, spec, [rows], [("k",)]), number=2)
        seq = len(before)
        for time, cut in enumerate(cuts, start=NOW + 1):
            later = [c for action in cut for c in ranks.changes_of(action, [], False)]
            table = ranks.table_of(later, seq, False, False)
            seq += len(later)
            assert went_on.step(table, time=time) == read.step(table, time=time)


CALLS = (overs.AGGREGATES[0][0], overs.AGGREGATES[3][0], overs.AGGREGATES[9][0])


@settings(max_examples=examples(20), deadline=None)
@given(
    before=st.lists(overs.small_rows, max_size=8),
    cuts=overs.cuts_strategy,
    frame=st.sampled_from([*overs.FRAMES]),
)
def test_over_goes_on_as_one_that_read_the_rows(before: list[ranks.Row], cuts: Any, frame: str) -> None:
    functions = tuple(
        OverFunction(call=call, order=(overs.ORDER,), frame=overs.FRAMES[frame]) for call in CALLS
    )
    spec, live = OverSpec(columns=ranks.COLUMNS, partition=("k",), functions=functions), list(before)
    rows = [(0, row) for row in before]
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        read = Epochs(one, spec, number=1)
        read.step(ranks.table_of(rows, 0, True, False))
        slices = built(other, spec, [ranks.table_of(rows, 7, False, False)], [("k",)])
        went_on, seq = Epochs(other, spec, slices, number=2), len(before)
        for cut in cuts:
            changes = [c for action in cut for c in ranks.changes_of(action, live, True)]
            table = ranks.table_of(changes, seq, True, False)
            seq += len(changes)
            assert went_on.step(table) == read.step(table)


interval_rows = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from(["a", "b", None]), st.integers(0, 2)), max_size=8
)


@pytest.mark.parametrize("safe", [False, True])
@settings(max_examples=examples(20), deadline=None)
@given(
    before=st.tuples(interval_rows, interval_rows),
    later=st.lists(st.tuples(interval_rows, interval_rows), max_size=3),
    residual=st.booleans(),
)
def test_an_interval_join_goes_on_as_one_that_read_the_rows(
    safe: bool, before: Any, later: Any, residual: bool
) -> None:
    """Event time begins with the rows that come: none of them is late because of what was built."""
    spec = intervals.spec_of("INNER", -10, 10, safe, residual)

    def ports(rows: Any) -> list[pa.Table]:
        made = ([intervals.Row(*row) for row in own] for own in rows)
        return [intervals.port(name, own) for name, own in zip("lr", made, strict=True)]

    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        read = Epochs(one, spec, number=1)
        read.step(*ports(before))
        tables = [table.drop_columns(["$wm"]) for table in ports(before)]
        went_on = Epochs(other, spec, built(other, spec, tables, [("lk",), ("rk",)]), number=2)
        for rows in later:
            assert Counter(went_on.step(*ports(rows))) == Counter(read.step(*ports(rows)))


def stepped(
    root: str, spec: OperatorSpec, base: Any, number: int, tables: Sequence[pa.Table], mark: int, before: int
) -> tuple[Any, Counter[Any]]:
    """The state after an epoch in which time goes on to ``mark``, and its output."""
    store = StateStore.open(root, "op", 0, base, number)
    context = EpochContext(epoch=number, time=0, partition=0, watermark=mark, before=before)
    output = spec.step(tuple(tables), store, context)
    return store.flush() or base, Counter(map(as_change, output.to_pylist()))


@pytest.mark.parametrize("safe", [False, True])
@settings(max_examples=examples(20), deadline=None)
@given(
    before=st.tuples(interval_rows, interval_rows),
    later=st.lists(st.tuples(interval_rows, interval_rows), max_size=3),
    mark=st.integers(0, 40),
)
def test_an_interval_join_goes_on_at_its_watermark(safe: bool, before: Any, later: Any, mark: int) -> None:
    """Rows that the job would have let go by then match no late row."""
    spec = intervals.spec_of("INNER", -10, 10, safe, False)

    def ports(rows: Any, reached: int) -> list[pa.Table]:
        made = ([intervals.Row(t, k, v, reached) for t, k, v in own] for own in rows)
        return [intervals.port(name, own) for name, own in zip("lr", made, strict=True)]

    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        read, _ = stepped(one, spec, None, 1, ports(before, NONE), mark, NONE)
        tables = [table.drop_columns(["$wm"]) for table in ports(before, NONE)]
        went_on: Any = built(other, spec, tables, [("lk",), ("rk",)])
        for number, rows in enumerate(later, start=2):
            epoch = (number, ports(rows, mark), mark + 3, mark)
            read, expected = stepped(one, spec, read, *epoch)
            went_on, found = stepped(other, spec, went_on, *epoch)
            assert found == expected
            mark += 3


TOP = rank_spec("ROW_NUMBER", "number", 1, 2, True)
TIED: list[ranks.Row] = [("a", 1, "x", 0.5), ("a", 1, "y", 0.5)]


@pytest.mark.parametrize(
    ("spec", "rows", "why"),
    [
        (TOP, TIED, r"column '\$seq' is NULL, and another row is equal in ORDER BY"),
        (replace(TOP, order=()), [TIED[0], ("a", 2, "z", 0.5)], r"'\$seq' is NULL"),
        (replace(TOP, function="RANK"), TIED, ""),
        (TOP, [TIED[0], TIED[0]], ""),
        (TOP, [TIED[0], ("b", 1, "y", 0.5), (None, 1, "y", 0.5)], ""),
        (replace(TOP, end=1, retracts=False), TIED, "Two rows for 'table' have the same key"),
    ],
)
def test_which_of_equal_rows_came_first_must_be_said(
    spec: RankSpec, rows: list[ranks.Row], why: str, tmp_path: Path
) -> None:
    table = ranks.table_of([(0, row) for row in rows], 0, False, False).drop_columns(["$seq"])
    if not why:
        assert built(str(tmp_path), spec, [table], [("k",)])
        return
    with pytest.raises(WorkerError, match=why):
        built(str(tmp_path), spec, [table], [("k",)])


@pytest.mark.parametrize(
    ("weights", "why"),
    [
        ([1, 1], "Two rows for 'table' have the same key"),
        ([0], "must be 1 or more"),
        ([None], "must be 1 or more"),
    ],
)
def test_what_breaks_a_side_is_refused(weights: list[int | None], why: str, tmp_path: Path) -> None:
    rows = joins.table_of(0, [(0, ("a", 0.0, 1))] * len(weights), False, False, "one")
    table = rows.append_column("$weight", pa.array(weights, pa.int64()))
    with pytest.raises(WorkerError, match=why):
        built(str(tmp_path), joins.spec_of("INNER", "one", False), [table], [("lk",)])


def test_rows_of_keys_that_match_nothing_leave_no_state(tmp_path: Path) -> None:
    rows = joins.table_of(0, [(0, (None, 0.0, 1))], False, False, "one")
    assert built(str(tmp_path), joins.spec_of("FULL", "one", False), [rows], [("lk",)]) == ()


def test_a_condition_of_the_last_rows_holds_for_all_that_are_given(tmp_path: Path) -> None:
    """Rows that fail the condition are not in the state, so a query cannot give them."""
    columns = (("k", pa.int64()), ("v", pa.string()))
    spec = ChangelogNormalizeSpec(columns=columns, keys=("k",), passes="$passes")
    rows = pa.table({"k": [1, 2, None], "v": ["a", "b", "c"]})
    went_on = Epochs(str(tmp_path), spec, built(str(tmp_path), spec, [rows], [("k",)]), number=2)
    later = pa.table(
        {
            "k": [1, 2, None, 4],
            "v": ["a", "z", "d", "e"],
            "$passes": [True, False, True, True],
            "$kind": pa.array([2, 2, 3, 0], pa.int8()),
            "$seq": [1, 2, 3, 4],
        }
    )
    shown = sorted(went_on.step(later), key=repr)
    assert shown == sorted([(3, (2, "b")), (3, (None, "c")), (0, (4, "e"))], key=repr)
