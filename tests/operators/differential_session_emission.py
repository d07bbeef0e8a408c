"""Sessions that show more than their end, against a dict of lists: right at every epoch, however cut."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.differential_session_aggregate import (
    SHAPES,
    Naive,
    Row,
    arrivals,
    spec_of,
    table_of,
)
from tests.operators.epochs import fold
from tests.operators.timed_epochs import TimedEpochs
from tests.tiers import examples
from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.changelog.watermarks import END, NONE, held_back
from tidemill.operators.window.session import SessionAggregateSpec
from tidemill.operators.window.triggers.trigger import Trigger

EMISSIONS = {
    "early": Trigger(early=0),
    "early, late": Trigger(early=0, lateness=6),
    "late": Trigger(lateness=7),
    "early after a while, late after another": Trigger(early=10, late=7, lateness=9),
}


def emitting(shape: str, trigger: Trigger) -> SessionAggregateSpec:
    plain = spec_of(*SHAPES[shape])
    return SessionAggregateSpec(
        keys=plain.keys,
        calls=plain.calls,
        time=plain.time,
        gap=plain.gap,
        clock=plain.clock,
        columns=plain.columns,
        output=plain.output,
        retracts=plain.retracts,
        trigger=trigger,
    )


def seen(naive: Naive, reached: int, trigger: Trigger) -> dict[tuple[Any, ...], int]:
    """What is shut, and what is open and shown."""
    whole = Naive(naive.calls, fired=list(naive.fired))
    for key, sessions in naive.open.items():
        for session in sessions:
            if session.end - 1 <= reached or trigger.early is not None:
                whole.show(key, session)
    return dict.fromkeys(whole.fired, 1)


@pytest.mark.parametrize("trigger", EMISSIONS)
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=examples(12), deadline=None, derandomize=True)
@given(
    rows=arrivals(),
    cuts=st.lists(st.integers(0, 30), max_size=6),
    waits=st.lists(st.integers(0, 8), min_size=9, max_size=9),
    patient=st.lists(st.booleans(), min_size=9, max_size=9),
)
def test_right_at_every_epoch(
    shape: str,
    trigger: str,
    rows: list[Row],
    cuts: list[int],
    waits: list[int],
    patient: list[bool],
) -> None:
    """After some epochs there is time for all timers: then everything is there that should be."""
    spec = emitting(shape, EMISSIONS[trigger])
    lateness = spec.trigger.lateness
    at_once = not spec.trigger.early and not spec.trigger.late
    naive, taken = Naive(spec.calls), []
    wholes = []
    for row in rows:
        row = row if spec.keys else replace(row, key=None)
        judged = replace(row, mark=held_back(row.mark, lateness))
        naive.reach(judged.mark)
        if row.weight < 0 and not (spec.retracts and naive.holds(judged)):
            continue
        naive.add(judged)
        taken.append(row)
        wholes.append(judged)
    late = naive.late
    shown: dict[tuple[Any, ...], int] = {}
    now, bounds = 0, [0, *sorted(c for c in cuts if c <= len(taken)), len(taken), len(taken)]
    with tempfile.TemporaryDirectory() as root:
        kernel = TimedEpochs(root, spec)
        for number, (first, behind) in enumerate(pairwise(bounds)):
            now += waits[number]
            last = number == len(bounds) - 2
            reached = END if last else max((r.mark for r in taken[: behind + 1]), default=NONE)
            part = list(enumerate(taken))[first:behind]
            fold(shown, _changes(kernel.step(table_of(part, spec.retracts), mark=reached, time=now)))
            while patient[number] and kernel.timer is not None:
                assert kernel.timer > now
                now = kernel.timer
                fold(shown, _changes(kernel.step(table_of([], spec.retracts), mark=reached, time=now)))
            if at_once or patient[number] or last:
                twin = Naive(spec.calls)
                for row in wholes[:behind]:
                    twin.reach(row.mark)
                    twin.add(row)
                twin.reach(held_back(reached, lateness))
                assert shown == seen(twin, reached, spec.trigger)
    assert kernel.late == late


def _changes(output: pa.Table) -> list[tuple[int, tuple[Any, ...]]]:
    names = [n for n in output.column_names if n not in ("k", "ws", "we", KIND_COLUMN)]
    keys = output.column("k").to_pylist() if "k" in output.column_names else [None] * len(output)
    bounds = [[v // 1000 for v in output.column(n).cast(pa.int64()).to_pylist()] for n in ("ws", "we")]
    values = [output.column(name).to_pylist() for name in names]
    kinds = output.column(KIND_COLUMN).to_pylist()
    return [(kind, tuple(row)) for kind, *row in zip(kinds, keys, *bounds, *values, strict=True)]


def test_sessions_that_begin_at_one_time() -> None:
    """In one epoch, rows taken back between them: their start does not tell them apart."""
    came = [
        ("a", 0, NONE, 1),
        ("a", 0, 0, -1),
        ("a", -6, 0, 1),
        ("a", 6, 0, 1),
        ("a", 0, 6, -1),
        ("b", 11, 6, 1),
    ]
    came += [("a", -3, 11, 1), ("b", 8, 11, 1), ("a", 6, 11, 1), ("a", 5, 11, 1), ("a", -6, 11, 1)]
    test_right_at_every_epoch.hypothesis.inner_test(
        "collected",
        "early after a while, late after another",
        [Row(key, time, 0, mark, weight) for key, time, mark, weight in came],
        [],
        [0] * 9,
        [False] * 9,
    )
