"""State that is not written for its TTL reads as if it had never been; what it showed stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.operators.epochs import KINDS, Epochs
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.api import OperatorSpec
from tidemill.operators.changelog_normalize import ChangelogNormalizeSpec
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.operators.join.operator import JoinSpec
from tidemill.operators.join.shape import JoinSide
from tidemill.operators.over.operator import OverFunction, OverSpec
from tidemill.operators.over.window import Frame
from tidemill.operators.rank.operator import RankSpec
from tidemill.operators.rows.ordering import OrderKey

TEXT, I32, I64 = pa.string(), pa.int32(), pa.int64()
COLUMNS = (("k", TEXT), ("v", I32))
TTL = 10
RANK = RankSpec(
    function="ROW_NUMBER",
    columns=COLUMNS,
    partition=("k",),
    order=(OrderKey("v", False, False),),
    start=1,
    end=2,
    state_ttl=TTL,
)
FIRST = replace(RANK, order=(), end=1, insert_only=True)
MATERIALIZED = replace(RANK, order=(), end=1, latest=True, by_place=True, retracts=True, update_before=False)
NORMALIZED = ChangelogNormalizeSpec(columns=COLUMNS, keys=("k",), state_ttl=TTL)
SUMS = OverSpec(
    columns=COLUMNS,
    partition=("k",),
    functions=(
        OverFunction(
            call=AggregateSpec(function="SUM", args=("v",), arg_types=(I32,), result=I32, name="s"),
            order=(OrderKey("v", True, True),),
            frame=Frame(rows=True, lower=None, upper=0),
        ),
    ),
    state_ttl=TTL,
)
LISTS = GroupAggregateSpec(
    keys=(("k", TEXT),),
    calls=(
        AggregateSpec(
            function="ARRAY_AGG", args=("v",), arg_types=(I32,), result=pa.list_(I32), name="all of them"
        ),
    ),
    retracts=True,
    state_ttl=TTL,
)
Script = list[tuple[int, list[tuple[int, str, int]], list[tuple[Any, ...]]]]
"""Per epoch: its time, the rows (kind, k, v), and what is shown."""

CASES: dict[str, tuple[OperatorSpec, Script]] = {
    "keep first": (
        FIRST,
        [
            (0, [(0, "a", 1)], [("+I", "a", 1)]),
            (9, [(0, "a", 2)], []),
            (10, [(0, "a", 3)], [("+I", "a", 3)]),
        ],
    ),
    "top two": (
        RANK,
        [
            (0, [(0, "a", 5)], [("+I", "a", 5)]),
            (5, [(0, "a", 4)], [("+I", "a", 4)]),
            (9, [(0, "a", 9)], [("-D", "a", 4), ("+I", "a", 9)]),
            # 5 has expired (4 has left), so there is place for another.
            (10, [(0, "a", 1)], [("+I", "a", 1)]),
        ],
    ),
    "top two of a changelog": (
        replace(RANK, retracts=True),
        [
            (0, [(0, "a", 5)], [("+I", "a", 5)]),
            (10, [(3, "a", 5)], []),
            (11, [(0, "a", 5)], [("+I", "a", 5)]),
            (20, [(3, "a", 5)], [("-D", "a", 5)]),
        ],
    ),
    "materializer": (
        MATERIALIZED,
        [
            (0, [(0, "a", 1)], [("+I", "a", 1)]),
            (6, [(0, "a", 2)], [("+U", "a", 2)]),
            (10, [(3, "a", 2)], [("-D", "a", 2)]),
            (11, [(3, "a", 1)], []),
        ],
    ),
    "normalize": (
        NORMALIZED,
        [
            (0, [(0, "a", 1)], [("+I", "a", 1)]),
            (9, [(2, "a", 2)], [("-U", "a", 1), ("+U", "a", 2)]),
            (19, [(2, "a", 3)], [("+I", "a", 3)]),
            (29, [(3, "a", 3)], []),
        ],
    ),
    "a list lives as long as its group": (
        LISTS,
        [
            (0, [(0, "a", 1)], [("+I", "a", (1,))]),
            (6, [(0, "a", 2)], [("-U", "a", (1,)), ("+U", "a", (1, 2))]),
            (12, [(0, "a", 3)], [("-U", "a", (1, 2)), ("+U", "a", (1, 2, 3))]),
            (21, [(3, "a", 1)], [("-U", "a", (1, 2, 3)), ("+U", "a", (2, 3))]),
            (31, [(0, "a", 4)], [("+I", "a", (4,))]),
        ],
    ),
    "running sums": (
        SUMS,
        [
            (0, [(0, "a", 1)], [("+I", "a", 1, 1)]),
            (9, [(0, "a", 2)], [("+I", "a", 2, 3)]),
            (10, [(0, "a", 3)], [("+I", "a", 3, 5)]),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_input(name: str, tmp_path: Path) -> None:
    spec, script = CASES[name]
    epochs = Epochs(str(tmp_path), spec)
    for number, (time, rows, shown) in enumerate(script):
        kinds, keys, values = zip(*rows, strict=True)
        table = pa.table(
            {"k": pa.array(keys, TEXT), "v": pa.array(values, I32), "$kind": pa.array(kinds, pa.int8())}
        ).append_column("$seq", pa.array([number * 100 + i for i in range(len(rows))], I64))
        assert [(KINDS[k], *row) for k, row in epochs.step(table, time=time)] == shown


def _join(kind: str, left: int, right: int) -> JoinSpec:
    sides = [
        JoinSide(
            columns=((f"{s}k", TEXT), (f"{s}v", I32)),
            keys=(f"{s}k",),
            output=(f"{s}k", f"{s}v"),
            retracts=True,
            ttl=ttl,
        )
        for s, ttl in (("l", left), ("r", right))
    ]
    return JoinSpec(kind=kind, left=sides[0], right=sides[1], null_safe=(False,))


def _rows(side: str, rows: list[tuple[int, str, int]]) -> pa.Table:
    kinds, keys, values = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            f"{side}k": pa.array(keys, TEXT),
            f"{side}v": pa.array(values, I32),
            "$kind": pa.array(kinds, pa.int8()),
        }
    )


Two = list[tuple[int, list[tuple[int, str, int]], list[tuple[int, str, int]], list[tuple[Any, ...]]]]
L, R = ("a", 1), ("a", 2)
JOINS: dict[str, tuple[JoinSpec, Two]] = {
    "either side by its own clock": (
        _join("INNER", 20, 5),
        [
            (0, [(0, *L)], [(0, *R)], [("+I", *L, *R)]),
            (6, [(0, "a", 7)], [], []),
            (19, [], [(0, "a", 3)], [("+I", "a", 1, "a", 3), ("+I", "a", 7, "a", 3)]),
            (23, [], [(0, "a", 4)], [("+I", "a", 7, "a", 4)]),
        ],
    ),
    "a row taken back too late": (
        _join("INNER", 5, 5),
        [
            (0, [(0, *L)], [(0, *R)], [("+I", *L, *R)]),
            (5, [(3, *L)], [], []),
            (6, [(0, *L)], [(0, *R)], [("+I", *L, *R)]),
            (7, [(3, *L)], [], [("-D", *L, *R)]),
        ],
    ),
    "an update that changes nothing renews": (
        _join("INNER", 5, 0),
        [
            (0, [(0, *L)], [], []),
            (4, [(1, *L), (2, *L)], [], []),
            (8, [], [(0, *R)], [("+I", *L, *R)]),
        ],
    ),
    "a shown match keeps the row from being padded": (
        _join("LEFT", 0, 5),
        [
            (0, [(0, *L)], [], [("+I", *L, None, None)]),
            (1, [], [(0, *R)], [("-D", *L, None, None), ("+I", *L, *R)]),
            (6, [], [(3, *R)], []),
            (7, [], [(0, "a", 3)], [("+I", *L, "a", 3)]),
            (8, [], [(3, "a", 3)], [("-D", *L, "a", 3)]),
        ],
    ),
    "semi": (
        _join("SEMI", 5, 5),
        [
            (0, [(0, *L)], [(0, *R)], [("+I", *L)]),
            (4, [], [(0, *R)], []),
            (8, [(3, *L)], [], [("-D", *L)]),
            (9, [(0, *L)], [], []),
        ],
    ),
    "anti": (
        _join("ANTI", 5, 0),
        [
            (0, [(0, *L)], [], [("+I", *L)]),
            (5, [], [(0, *R)], []),
            (6, [(0, *L)], [], []),
            (7, [], [(3, *R)], [("+I", *L)]),
        ],
    ),
}


@pytest.mark.parametrize("name", JOINS)
def test_joins(name: str, tmp_path: Path) -> None:
    spec, script = JOINS[name]
    epochs = Epochs(str(tmp_path), spec)
    for time, left, right, shown in script:
        changes = epochs.step(_rows("l", left), _rows("r", right), time=time)
        assert sorted(((KINDS[k], *row) for k, row in changes), key=str) == sorted(shown, key=str)


def test_a_ttl_is_part_of_what_state_means_but_its_length_is_not() -> None:
    prints = [_join("LEFT", *ttls).fingerprint for ttls in ((0, 0), (5, 0), (0, 5), (7, 0))]
    assert prints[1] == prints[3]
    assert len(set(prints)) == 3
