"""Group aggregate against its naive twin: random rows, kinds, epoch cuts, hashes, restarts, merges."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.naive_aggregate import Change, NaiveAggregate, changes_of
from tests.tiers import examples
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.api import EpochContext
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.state.spine import SpineOptions
from tidemill.state.store import StateStore

TYPES: dict[str, pa.DataType] = {
    "k": pa.string(),
    "j": pa.float64(),
    "v": pa.int32(),
    "n": pa.int32(),
    "d": pa.decimal128(10, 2),
    "x": pa.float64(),
    "y": pa.float32(),
    "b": pa.int64(),
    "w": pa.decimal128(38, 2),
    "s": pa.string(),
    "f": pa.bool_(),
}
WIDEST = Decimal("9" * 36 + ".99")
TINY = SpineOptions(fuel=4, fuel_per_row=1, slice_rows=2)


def call(function: str, arg: str | None, result: pa.DataType, **more: Any) -> AggregateSpec:
    args = () if arg is None else (arg,)
    kinds = tuple(TYPES[a] for a in args)
    name = f"{function}_{arg}_{more.get('filter')}_{more.get('distinct')}"
    return AggregateSpec(
        function=function,
        args=args,
        arg_types=kinds,
        result=result,
        name=name,
        **more,
    )


I64, I32, F64, TEXT = pa.int64(), pa.int32(), pa.float64(), pa.string()
LINEAR = (
    call("COUNT", None, I64),
    call("COUNT", "v", I64, filter="f"),
    call("SUM", "v", I32),
    call("AVG", "v", I32),
    call("SUM", "d", pa.decimal128(38, 2)),
    call("AVG", "d", pa.decimal128(38, 6)),
    call("$SUM0", "v", I32, filter="f"),
    call("SUM", "x", F64),
    call("AVG", "x", F64),
    call("SUM", "y", pa.float32()),
    call("AVG", "b", I64),
    call("SUM", "w", pa.decimal128(38, 2)),
    call("VAR_POP", "n", F64),
    call("STDDEV_SAMP", "n", F64, filter="f"),
)
EXTREMES = (
    call("MIN", "v", I32),
    call("MAX", "v", I32, filter="f"),
    call("MIN", "s", TEXT),
    call("MAX", "d", TYPES["d"]),
    call("MAX", "f", pa.bool_()),
    call("MIN", "x", F64),
    call("MAX", "x", F64),
    call("MAX", "y", pa.float32()),
    call("MIN", "b", I64),
    call("MAX", "b", I64),
    call("MAX", "w", TYPES["w"]),
)
DISTINCT = (
    call("COUNT", "v", I64, distinct=True),
    call("COUNT", "v", I64, distinct=True, filter="f"),
    call("SUM", "v", I32, distinct=True),
    call("COUNT", "s", I64, distinct=True),
    call("AVG", "d", pa.decimal128(38, 6), distinct=True),
)
ORDERED = (
    call("FIRST_VALUE", "v", I32),
    call("LAST_VALUE", "s", TEXT, filter="f"),
    call("LAST_VALUE", "x", F64),
    call("LISTAGG", "s", TEXT),
    call("LISTAGG", "s", TEXT, distinct=True, filter="f"),
    call("ARRAY_AGG", "n", pa.list_(I32)),
    call("ARRAY_AGG", "d", pa.list_(TYPES["d"]), distinct=True),
    call("COUNT", "s", I64, distinct=True),
)
SUITES = {"linear": LINEAR, "extremes": EXTREMES, "distinct": DISTINCT, "ordered": ORDERED, "nothing": ()}

# Sums of these are exact in a pair of doubles, also once 1e30 has come and gone: of 0.1 some digits would go.
rows_strategy = st.fixed_dictionaries(
    {
        "k": st.sampled_from(["a", "b", "long key", None]),
        "j": st.sampled_from([0.0, -0.0, float("nan"), None]),
        "v": st.one_of(st.none(), st.integers(-4, 4), st.integers(2**30, 2**31 - 1)),
        "n": st.integers(-4, 4),
        "d": st.one_of(st.none(), st.decimals(-999, 999, places=2)),
        "x": st.sampled_from([1.5, -2.0, 0.125, 1e30, 0.0, -0.0, math.inf, -math.inf, math.nan, None]),
        "y": st.sampled_from([1.5, 0.0, -0.0, -2.5, math.inf, math.nan, None]),
        "b": st.sampled_from([-(2**63), 2**63 - 1, 0, 7, None]),
        "w": st.sampled_from([WIDEST, WIDEST.copy_negate(), Decimal(6 * 10**35), Decimal("0.05"), None]),
        "s": st.sampled_from(["", "x", "yy", "é", None]),
        "f": st.sampled_from([True, False, None]),
    }
)
# A number draws either a new row or which live row to take back; -1 takes back from nowhere.
actions = st.lists(st.lists(st.one_of(rows_strategy, st.integers(-1, 9)), max_size=9), min_size=1, max_size=6)


def epochs_of(cuts: list[list[Any]], retracts: bool, ghosts: bool) -> list[pa.Table]:
    """The drawn actions as input tables; sequence numbers run on."""
    live: list[dict[str, Any]] = []
    tables, seq = [], 0
    for cut in cuts:
        rows = []
        for action in cut:
            if action == -1 and not ghosts:
                continue
            row, kind = _row_of(action, live, retracts)
            if row is not None:
                rows.append({**row, "$kind": kind, "$seq": seq})
                seq += 1
        schema = pa.schema([*TYPES.items(), ("$kind", pa.int8()), ("$seq", pa.int64())])
        table = pa.Table.from_pylist(rows, schema=schema)
        tables.append(table if retracts else table.drop_columns(["$kind"]))
    return tables


def _row_of(action: Any, live: list[dict[str, Any]], retracts: bool) -> tuple[dict[str, Any] | None, int]:
    if isinstance(action, dict):
        live.append(action)
        return action, 0
    if not retracts or (action >= 0 and not live):
        return None, 0
    if action < 0:
        return {**dict.fromkeys(TYPES), "k": "never seen"}, 3
    return live.pop(action % len(live)), 1


def weakly_hashed(table: pa.Table) -> pa.Table:
    """Two hash values for all keys: most groups collide."""
    hashes = [0 if k is None or len(k) % 2 else 2**63 for k in table["k"].to_pylist()]
    return table.append_column("$hash", pa.array(hashes, pa.uint64()))


def in_two_phases(spec: GroupAggregateSpec, table: pa.Table) -> tuple[GroupAggregateSpec, pa.Table]:
    """One half combined, one as it is, and the spec that takes that."""
    if "$hash" not in table.schema.names:
        hashes = hash_columns([table.column(name) for name, _ in spec.keys], len(table))
        table = table.append_column("$hash", pa.array(hashes, pa.uint64()))
    half = len(table) // 2
    return spec.merged([table.slice(half)], [spec.combine(table.slice(0, half))])


def run_twins(spec: GroupAggregateSpec, tables: list[pa.Table], weak: bool, local: bool = False) -> None:
    twin, manifest = NaiveAggregate(spec), None
    with TemporaryDirectory() as root:
        for epoch, table in enumerate(tables):
            expected = twin.epoch(table)
            store = StateStore.open(root, "op", 0, manifest, epoch, options=TINY)
            rows = weakly_hashed(table) if weak else table
            kernel, rows = in_two_phases(spec, rows) if local else (spec, rows)
            output = kernel.step((rows,), store, EpochContext(epoch=epoch, time=0, partition=0))
            manifest = store.flush()
            assert output.schema.equals(spec.output_schema())
            _same_changes(spec, changes_of(spec, output), expected)


def _same_changes(spec: GroupAggregateSpec, got: list[Change], expected: list[Change]) -> None:
    if spec.per_record:
        assert got == expected
        return
    assert sorted(map(repr, got)) == sorted(map(repr, expected))
    for i, (kind, row) in enumerate(got):
        if kind == 1:
            assert got[i + 1][0] == 2
            assert got[i + 1][1][: len(spec.keys)] == row[: len(spec.keys)]


def of_one_call(spec: GroupAggregateSpec, place: int, output: pa.Table) -> pa.Table:
    """What a reader of the keys and one call takes of a marked aggregation's output."""
    kinds, marks = output["$kind"].to_pylist(), output[spec.mark].to_pylist()
    mine = [kind in (0, 3) or bool(mark & 1 << place) for kind, mark in zip(kinds, marks, strict=True)]
    names = [*(name for name, _ in spec.keys), spec.calls[place].name, "$kind"]
    return output.filter(pa.array(mine, pa.bool_())).select(names)


KEYS = {"keys": (("k", pa.string()), ("j", pa.float64())), "global": ()}
CASES = [(suite, keys) for suite in SUITES for keys in KEYS if SUITES[suite] or KEYS[keys]]


@pytest.mark.parametrize(("suite", "keys"), CASES)
@pytest.mark.parametrize("retracts", [False, True], ids=["append", "retract"])
@pytest.mark.parametrize("per_record", [False, True], ids=["net", "per-record"])
@settings(max_examples=examples(10), deadline=None)
@given(cuts=actions, weak=st.booleans(), local=st.booleans(), update_before=st.booleans())
def test_kernel_is_its_twin(
    suite: str,
    keys: str,
    retracts: bool,
    per_record: bool,
    cuts: list[list[Any]],
    weak: bool,
    local: bool,
    update_before: bool,
) -> None:
    if keys == "global":
        weak = False
    spec = GroupAggregateSpec(
        keys=KEYS[keys],
        calls=SUITES[suite],
        retracts=retracts,
        per_record=per_record,
        emit_update_before=update_before,
    )
    run_twins(spec, epochs_of(cuts, retracts, keys != "global"), weak, local and spec.combinable)


@pytest.mark.parametrize("suite", [suite for suite in SUITES if SUITES[suite]])
@pytest.mark.parametrize("retracts", [False, True], ids=["append", "retract"])
@pytest.mark.parametrize("per_record", [False, True], ids=["net", "per-record"])
@settings(max_examples=examples(10), deadline=None)
@given(cuts=actions)
def test_each_call_of_a_marked_aggregation_is_one_of_its_own(
    suite: str, retracts: bool, per_record: bool, cuts: list[list[Any]]
) -> None:
    whole = GroupAggregateSpec(
        keys=KEYS["keys"], calls=SUITES[suite], retracts=retracts, per_record=per_record, mark="$changed"
    )
    alone = [replace(whole, calls=(call,), mark="") for call in whole.calls]
    twins, manifest = [NaiveAggregate(spec) for spec in alone], None
    with TemporaryDirectory() as root:
        for epoch, table in enumerate(epochs_of(cuts, retracts, ghosts=True)):
            store = StateStore.open(root, "op", 0, manifest, epoch, options=TINY)
            output = whole.step((table,), store, EpochContext(epoch=epoch, time=0, partition=0))
            manifest = store.flush()
            for place, (spec, twin) in enumerate(zip(alone, twins, strict=True)):
                _same_changes(spec, changes_of(spec, of_one_call(whole, place, output)), twin.epoch(table))
