"""Every table that an operator keeps, found by walking through specs; and where in the code each is laid out.

The contract of state is tested for all of them: see ``differential_contract`` and
``differential_time_contract``.
"""

from __future__ import annotations

import ast
import dataclasses
import sys
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import tidemill
from tests.operators import (
    differential_computed_once,
    differential_interval_join,
    differential_lookup_join,
    differential_null_aware,
    differential_over_by_time,
    differential_session_aggregate,
    differential_session_emission,
    differential_shared_distinct,
    differential_shared_values,
    differential_temporal_join,
    differential_temporal_sort,
    differential_window_aggregate,
    differential_window_buffer,
    differential_window_emission,
    test_match_by_clock,
)
from tests.operators.differential_group_aggregate import DISTINCT, EXTREMES, LINEAR, ORDERED
from tests.operators.differential_long_ttl import GROUPED, OVER, RANKED
from tests.operators.differential_rank import COLUMNS
from tidemill.operators.changelog_normalize import ChangelogNormalizeSpec
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.operators.join.operator import JoinSpec
from tidemill.operators.join.shape import JoinSide
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.dynamic import DynamicAggregateSpec
from tidemill.operators.window.output import WindowColumns
from tidemill.operators.window.store.first_slice_distinct import FirstSliceDistinct
from tidemill.operators.window.triggers.trigger import Trigger
from tidemill.state.layout import Layout

TTL = 40
_PACKAGE = Path(tidemill.__file__).parent
_OPERATORS = _PACKAGE / "operators"
Site = tuple[str, int]
"""A module below ``operators`` and the line of a call that makes a layout."""


def _side(letter: str, retracts: bool, ttl: int) -> JoinSide:
    columns = ((f"{letter}k", pa.string()), (f"{letter}n", pa.int32()), (f"{letter}s", pa.list_(pa.string())))
    return JoinSide(columns=columns, keys=columns[0][:1], output=(), retracts=retracts, ttl=ttl)


def _for_a_while(ttl: int) -> Iterator[Any]:
    """Specs whose state may have a TTL."""
    calls = (*LINEAR, *EXTREMES, *DISTINCT, *ORDERED)
    for retracts in (False, True):
        yield GroupAggregateSpec(keys=(("k", pa.string()),), calls=calls, retracts=retracts, state_ttl=ttl)
        for kind in ("INNER", "FULL"):
            sides = _side("l", retracts, ttl), _side("r", retracts, 0)
            yield JoinSpec(kind=kind, left=sides[0], right=sides[1], null_safe=(False,))
        for end in (1, RANKED.end):
            yield dataclasses.replace(RANKED, retracts=retracts, end=end, state_ttl=ttl)
    yield dataclasses.replace(GROUPED, state_ttl=ttl)
    yield dataclasses.replace(OVER, state_ttl=ttl)
    yield dataclasses.replace(differential_over_by_time.SHAPES["all in one"], state_ttl=ttl)
    yield ChangelogNormalizeSpec(columns=COLUMNS, keys=("k",), state_ttl=ttl)
    for name in ("accumulated", "collected, rows go"):
        keyed, rows_go = differential_session_aggregate.SHAPES[name][1:]
        yield DynamicAggregateSpec(
            keys=keyed,
            calls=differential_session_aggregate.SHAPES[name][0],
            time="t",
            slide=5,
            gap=0 if ttl else 7,
            clock=Clock(),
            columns=WindowColumns(start="ws", end="we"),
            output=(),
            retracts=rows_go,
            state_ttl=ttl,
        )


def _by_time() -> Iterator[Any]:
    """Specs whose state goes as time passes, or never."""
    trigger = Trigger(early=10, late=7, lateness=9)
    for calls in differential_window_aggregate.CALLS:
        for windows in ("hop", "cumulate"):
            yield differential_window_aggregate.spec_of(windows, calls)
        yield differential_window_emission.emitting("tumble", calls, trigger)
    for shape in differential_session_aggregate.SHAPES:
        yield differential_session_aggregate.spec_of(*differential_session_aggregate.SHAPES[shape])
        yield differential_session_emission.emitting(shape, trigger)
    for kind in ("INNER", "FULL"):
        yield differential_interval_join.spec_of(kind, -2, 3, False, False)
    for width in (8, 64):
        yield differential_shared_values.spec_of("cumulate", width)
        yield differential_shared_distinct.spec_of(width, sets=False)
    yield differential_temporal_join.SPEC
    yield dataclasses.replace(differential_temporal_join.SPEC, sequence=True)
    yield differential_temporal_sort.SPEC
    yield test_match_by_clock.SPEC
    yield differential_lookup_join.spec(True)
    yield differential_computed_once.SPEC
    yield differential_null_aware.SPEC
    yield differential_window_buffer.top(1, 2, keyed=True, append=True)
    yield differential_window_buffer.join("FULL", retracts=True)


# -- walking ----------------------------------------------------------------------------------------


def _layouts(value: Any, path: str) -> Iterator[tuple[str, Layout]]:
    """Those that ``value`` has, or its parts and properties have. What is kept of properties is not asked, so
    that each layout is made once more."""
    if isinstance(value, Layout):
        yield f"{path} {value.name}", value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _layouts(part, path)
    elif isinstance(value, Mapping):
        yield from _layouts(list(value.values()), path)
    elif dataclasses.is_dataclass(value) and type(value).__module__.startswith("tidemill.operators"):
        if isinstance(value, FirstSliceDistinct):
            yield from _layouts([view.layout(value.fields) for view in value.views.values()], path)
        for part in _parts(value):
            yield from _layouts(part, path)


def _parts(value: Any) -> Iterator[Any]:
    for field in dataclasses.fields(value):
        yield getattr(value, field.name)
    members = {name: member for kind in reversed(type(value).__mro__) for name, member in vars(kind).items()}
    for member in members.values():
        made = member.func if isinstance(member, cached_property) else getattr(member, "fget", None)
        if made is not None:
            yield made(value)


def _constants() -> Iterator[tuple[str, Layout]]:
    for module, _ in _sites():
        for name, value in vars(import_module(module)).items():
            if isinstance(value, Layout):
                yield f"{module} {name}", value


def _shape(layout: Layout) -> tuple[Any, ...]:
    """The properties that the contract can tell apart: not names."""
    parts = (layout.keys, layout.values, layout.columns)
    types = tuple(tuple(str(field.type) for field in part) for part in parts)
    return *types, layout.additive, layout.growing, layout.ttl, layout.by_time


@cache
def operators_layouts() -> dict[str, Layout]:
    """One of each shape, by a name that says whose it is."""
    return _found()[0]


def _found() -> tuple[dict[str, Layout], set[Site]]:
    by_shape: dict[Any, tuple[str, Layout]] = {}
    made = set()
    whole = Layout.__post_init__

    def noting(layout: Layout) -> None:
        frame = sys._getframe(2)  # above the __init__ that calls this
        made.add((str(frame.f_globals.get("__name__")), frame.f_lineno))
        whole(layout)

    with patch.object(Layout, "__post_init__", noting):
        specs = [*_for_a_while(0), *_for_a_while(TTL), *_by_time()]
        for name, layout in (x for spec in specs for x in _layouts(spec, type(spec).__name__)):
            by_shape.setdefault(_shape(layout), (name, layout))
    for name, layout in _constants():
        by_shape.setdefault(_shape(layout), (name, layout))
    return {f"{name} {number}": layout for number, (name, layout) in enumerate(by_shape.values())}, made


# -- completeness -----------------------------------------------------------------------------------


@cache
def _sites() -> tuple[Site, ...]:
    """The calls of ``Layout`` in the operators' code."""
    found = []
    for path in sorted(_OPERATORS.rglob("*.py")):
        module = ".".join(("tidemill", *path.relative_to(_PACKAGE).with_suffix("").parts))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Layout":
                found.append((module, node.lineno))
    return tuple(found)


def without_laws() -> list[Site]:
    """Calls that make a layout for which no contract was tested: give a spec that has it a line above."""
    return sorted(set(_sites()) - _found()[1] - _of_constants())


def _of_constants() -> set[Site]:
    """The calls at the top of a module."""
    found = set()
    for module, line in _sites():
        tree = ast.parse(Path(import_module(module).__file__ or "").read_text())
        tops = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
        found |= {(module, line) for node in tops if node.lineno <= line <= (node.end_lineno or 0)}
    return found
