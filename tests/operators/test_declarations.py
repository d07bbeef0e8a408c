"""Every built-in aggregate is declared whole: nothing is assumed of a function that leaves a property out."""

from __future__ import annotations

from dataclasses import MISSING, fields

import pytest

from tidemill.functions.registry import AGGREGATE_FAMILIES
from tidemill.operators.aggregates.declaration import AggregateDeclaration, FlinkPhases, Merging
from tidemill.operators.aggregates.registry import declarations, declared

NAMES = sorted(f.name for family in AGGREGATE_FAMILIES for f in family.AGGREGATES)


def test_all_that_have_types_are_declared() -> None:
    assert sorted(declarations()) == NAMES


@pytest.mark.parametrize("kind", [AggregateDeclaration, FlinkPhases])
def test_no_property_can_be_left_out(kind: type) -> None:
    assert [
        f.name for f in fields(kind) if f.default is not MISSING or f.default_factory is not MISSING
    ] == []


def test_of_what_is_not_declared_nothing_is_known() -> None:
    assert declared("ROW_NUMBER") is None


@pytest.mark.parametrize("name", NAMES)
def test_parts_and_mergers_are_aggregates_that_merge(name: str) -> None:
    found = declarations()[name]
    for other in (*found.parts, found.merged_by):
        assert other in declarations()
    if found.merging is not Merging.NEVER:
        assert all(declarations()[part].merging is not Merging.NEVER for part in found.parts)
        assert not found.ordered
