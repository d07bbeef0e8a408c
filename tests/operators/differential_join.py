"""The join against its naive twin: all kinds, random changes, epoch cuts, hashes, restarts, merges."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.epochs import Epochs, fold
from tests.operators.naive_join import NaiveJoin, Row
from tests.tiers import examples
from tidemill.operators.join.operator import JoinSpec
from tidemill.operators.join.residual import ColumnTerm, ComputedTerm, Residual
from tidemill.operators.join.shape import JoinSide

KINDS = ("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
SCHEMAS = tuple(
    ((f"{side}k", pa.string()), (f"{side}j", pa.float64()), (f"{side}v", pa.int32())) for side in "lr"
)
KEYS: dict[str, tuple[tuple[int, int, bool], ...]] = {
    "one": ((0, 0, False),),
    "null-safe": ((0, 0, True),),
    "mixed": ((0, 0, True), (1, 1, False)),
    "none": (),
}

rows_strategy = st.tuples(
    st.sampled_from(["a", "b", "a longer key", None]),
    st.sampled_from([0.0, 1.5, float("nan"), None]),
    st.sampled_from([1, 2, 3, None]),
)
# A row to add, or a number: which live row to take back. An update takes one back and adds another.
action = st.tuples(
    st.integers(0, 1),
    st.one_of(rows_strategy, st.integers(0, 9), st.tuples(st.integers(0, 9), rows_strategy)),
)
cuts_strategy = st.lists(st.lists(action, max_size=8), min_size=1, max_size=6)


def less(a: Row, b: Row) -> bool:
    return a[2] is not None and b[2] is not None and a[2] < b[2]


def loosely(a: Row, b: Row) -> bool:
    """Whether the last two columns are equal or not known to differ."""
    return all(x is None or y is None or x == y for x, y in zip(a[1:], b[1:], strict=True))


LOOSE = (("lj", "rj"), ("lv", "rv"))
RESIDUAL = Residual(ComputedTerm("<", (ColumnTerm("lv"), ColumnTerm("rv"))))


def spec_of(
    kind: str, keys: str, residual: bool, retracts: bool = True, update_before: bool = True
) -> JoinSpec:
    return JoinSpec(
        kind=kind,
        left=side_of(0, keys, retracts),
        right=side_of(1, keys, retracts),
        null_safe=tuple(safe for _, _, safe in KEYS[keys]),
        residual=RESIDUAL if residual else None,
        update_before=update_before,
        insert_only=not retracts and kind == "INNER",
    )


def side_of(number: int, keys: str, retracts: bool) -> JoinSide:
    names = tuple(n for n, _ in SCHEMAS[number])
    places = tuple(pair[number] for pair in KEYS[keys])
    return JoinSide(
        columns=SCHEMAS[number], keys=tuple(names[p] for p in places), output=names, retracts=retracts
    )


def changes_of(live: list[Row], drawn: Any, retracts: bool) -> list[tuple[int, Row]]:
    """(kind, row) pairs of one action on the ``live`` rows of its side."""
    if isinstance(drawn, tuple) and len(drawn) == 3:
        live.append(drawn)
        return [(0, drawn)]
    if not retracts or not live:
        return []
    if isinstance(drawn, int):
        return [(3, live.pop(drawn % len(live)))]
    old = live.pop(drawn[0] % len(live))
    live.append(drawn[1])
    return [(1, old), (2, drawn[1])]


def table_of(side: int, changes: list[tuple[int, Row]], retracts: bool, weak: bool, keys: str) -> pa.Table:
    names = [n for n, _ in SCHEMAS[side]]
    schema = pa.schema([*SCHEMAS[side], ("$kind", pa.int8())])
    table = pa.Table.from_pylist(
        [{**dict(zip(names, row, strict=True)), "$kind": kind} for kind, row in changes], schema=schema
    )
    if not retracts:
        table = table.drop_columns(["$kind"])
    if weak and KEYS[keys]:
        # Two hashes for all keys: most keys collide.
        hashes = [0 if row[0] is None or len(row[0]) > 1 else 2**63 for _, row in changes]
        table = table.append_column("$hash", pa.array(hashes, pa.uint64()))
    return table


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keys", KEYS)
@settings(max_examples=examples(8), deadline=None)
@given(
    cuts=cuts_strategy,
    residual=st.booleans(),
    weak=st.booleans(),
    retracts=st.booleans(),
    update_before=st.booleans(),
)
def test_folded_output_is_the_join(
    kind: str, keys: str, cuts: Any, residual: bool, weak: bool, retracts: bool, update_before: bool
) -> None:
    spec = spec_of(kind, keys, residual, retracts, update_before)
    twin = NaiveJoin(kind, KEYS[keys], less if residual else None, 3)
    live: tuple[list[Row], list[Row]] = ([], [])
    shown: dict[Any, int] = {}
    with TemporaryDirectory() as root:
        epochs = Epochs(root, spec)
        for cut in cuts:
            changes: tuple[list[tuple[int, Row]], ...] = ([], [])
            for side, drawn in cut:
                changes[side].extend(changes_of(live[side], drawn, retracts))
            for side in (0, 1):
                for change, row in changes[side]:
                    twin.take(side, row, -1 if change & 1 else 1)
            tables = [table_of(s, changes[s], retracts, weak, keys) for s in (0, 1)]
            output = epochs.step(*tables)
            fold(shown, output)
            assert Counter(shown) == twin.result()
            assert {k for k, _ in output} <= allowed(retracts, update_before, kind)


def allowed(retracts: bool, update_before: bool, kind: str) -> set[int]:
    """An outer or anti join of append-only inputs takes rows back, but has no updates to show."""
    if not retracts:
        return {0} if kind in ("INNER", "SEMI") else {0, 3}
    return {0, 1, 2, 3} if update_before else {0, 2, 3}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(8), deadline=None)
@given(
    early=st.lists(st.tuples(st.integers(0, 1), rows_strategy), max_size=4),
    rows=st.lists(st.tuples(st.integers(0, 1), rows_strategy), max_size=6),
    residual=st.booleans(),
)
def test_rows_taken_back_before_they_came_are_owed(
    kind: str, early: list[tuple[int, Row]], rows: list[tuple[int, Row]], residual: bool
) -> None:
    """State counts below zero until the row comes: then the answer is as if it had never been."""
    twin = NaiveJoin(kind, KEYS["one"], less if residual else None, 3)
    shown: Counter[Any] = Counter()
    plan = [
        [(side, 3, row) for side, row in early],
        [(side, 0, row) for side, row in rows],
        [(side, 0, row) for side, row in early],
    ]
    for side, row in rows:
        twin.take(side, row, 1)
    with TemporaryDirectory() as root:
        epochs = Epochs(root, spec_of(kind, "one", residual))
        for cut in plan:
            changes = [[(k, row) for s, k, row in cut if s == side] for side in (0, 1)]
            for change, row in epochs.step(*(table_of(s, changes[s], True, False, "one") for s in (0, 1))):
                shown[row] += -1 if change & 1 else 1
    assert {row: n for row, n in shown.items() if n} == dict(twin.result())


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_several_runs_meet_an_epoch_of_the_other_side_alone(kind: str) -> None:
    """The right side's runs hold the same keys; an epoch without right rows reads them one after another."""
    spec, twin = spec_of(kind, "one", False), NaiveJoin(kind, KEYS["one"], None, 3)
    rows = [(key, 0.0, n) for n in range(5) for key in ("a", "b", "a longer key")]
    later = [[(key, 1.5, n) for key in ("b", "a")] for n in range(2)]
    epochs_of = [([], rows), *(([], part) for part in later), ([("a", 0.0, 1), ("b", 0.0, 2)], [])]
    shown: dict[Any, int] = {}
    with TemporaryDirectory() as root:
        epochs = Epochs(root, spec)
        for cut in epochs_of:
            for side in (0, 1):
                for row in cut[side]:
                    twin.take(side, row, 1)
            tables = [
                table_of(side, [(0, row) for row in cut[side]], bool(side == 0), False, "one")
                for side in (0, 1)
            ]
            fold(shown, epochs.step(*tables))
            assert Counter(shown) == twin.result()


@pytest.mark.parametrize("kind", ["SEMI", "ANTI"])
@pytest.mark.parametrize("keys", ["one", "none"])
@settings(max_examples=examples(40), deadline=None)
@given(cuts=cuts_strategy, weak=st.booleans())
def test_columns_that_null_goes_with(kind: str, keys: str, cuts: Any, weak: bool) -> None:
    """NOT IN beside other keys and of several columns, NaN among the values."""
    spec = replace(spec_of(kind, keys, False), loose=LOOSE)
    twin = NaiveJoin(kind, KEYS[keys], loosely, 3)
    live: tuple[list[Row], list[Row]] = ([], [])
    shown: dict[Any, int] = {}
    with TemporaryDirectory() as root:
        epochs = Epochs(root, spec)
        for cut in cuts:
            changes: tuple[list[tuple[int, Row]], ...] = ([], [])
            for side, drawn in cut:
                changes[side].extend(changes_of(live[side], drawn, True))
            for side in (0, 1):
                for change, row in changes[side]:
                    twin.take(side, row, -1 if change & 1 else 1)
            fold(shown, epochs.step(*(table_of(s, changes[s], True, weak, keys) for s in (0, 1))))
            assert Counter(shown) == twin.result()
