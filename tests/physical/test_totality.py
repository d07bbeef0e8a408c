"""Every node is planned and explained, or refused by name."""

from __future__ import annotations

from types import ModuleType

import pytest

from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.physical.batch import planner as batch
from tidemill.physical.batch.view import nodes as v
from tidemill.physical.batch.view.attributes import attributes as batch_attributes
from tidemill.physical.explain.attributes import attributes
from tidemill.physical.explain.syntax_tree import line
from tidemill.physical.planner import convert_node
from tidemill.plan import nodes as n
from tidemill.runtime.spark.batch_frames.frames import BatchFrames

ABSTRACT = {n.LogicalNode, n.Unary, p.PhysicalNode, p.Unary, b.BatchNode, b.Unary}
WITHOUT_ATTRIBUTES = {p.DropUpdateBefore}
IN_VIEW: dict[type, type] = {b.Aggregate: v.Aggregate, b.Join: v.Join}
ONLY_BOUND = {n.LateralJoin}
"""Of which the rules leave none."""


def _concrete(module: ModuleType, root: type) -> list[type]:
    found = [x for x in vars(module).values() if isinstance(x, type) and issubclass(x, root)]
    return [x for x in found if x.__module__.startswith(module.__name__) and x not in ABSTRACT]


@pytest.mark.parametrize("kind", _concrete(n, n.LogicalNode), ids=lambda k: str(k.__name__))
def test_logical_node(kind: type) -> None:
    for dispatcher in (line,) if kind in ONLY_BOUND else (convert_node, batch.convert_node, line):
        assert dispatcher.dispatch(kind) is not dispatcher.dispatch(object), dispatcher


@pytest.mark.parametrize("kind", _concrete(p, p.PhysicalNode), ids=lambda k: str(k.__name__))
def test_physical_node(kind: type) -> None:
    handled = attributes.dispatch(kind) is not attributes.dispatch(object)
    assert handled or kind in WITHOUT_ATTRIBUTES


@pytest.mark.parametrize("kind", _concrete(b, b.BatchNode), ids=lambda k: str(k.__name__))
def test_batch_node(kind: type) -> None:
    shown = IN_VIEW.get(kind, kind)
    assert batch_attributes.dispatch(shown) is not batch_attributes.dispatch(object)
    frame = vars(BatchFrames)["make"].dispatcher
    assert frame.dispatch(kind) is not frame.dispatch(object)
