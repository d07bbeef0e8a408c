"""Every node is planned and explained, or refused by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import pytest

from tidemill.errors import InternalError
from tidemill.physical import nodes as p
from tidemill.physical.batch import conversion as batch
from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.planner import plan_batch
from tidemill.physical.batch.view import nodes as v
from tidemill.physical.batch.view.attributes import attributes as batch_attributes
from tidemill.physical.conversion import convert_node
from tidemill.physical.explain.attributes import attributes
from tidemill.physical.explain.printer import Form
from tidemill.physical.explain.syntax_tree import line
from tidemill.physical.explain.view import nodes as phases
from tidemill.physical.planner import plan_job
from tidemill.physical.questions import WITHOUT_DEFAULT
from tidemill.physical.traits.changelog_mode import Updates, modifications, satisfied
from tidemill.physical.tree import rebuilt
from tidemill.plan import nodes as n
from tidemill.runtime.compile.shared import build
from tidemill.runtime.spark.batch_frames.frames import BatchFrames

ABSTRACT = {n.LogicalNode, n.Unary, p.PhysicalNode, p.Unary, p.Versioned}
BATCH = "tidemill.physical.batch"
VIEW = "tidemill.physical.explain.view"
IN_VIEW: dict[type, type] = {b.Aggregate: v.Aggregate, b.Join: v.Join}
REGISTERED = (plan_job, plan_batch, phases.phases)
"""Of the modules whose import registers answers or nodes."""
ONLY_BOUND = {n.LateralJoin}
"""Of which the rules leave none."""


def _concrete(module: ModuleType, root: type) -> list[type]:
    found = [x for x in vars(module).values() if isinstance(x, type) and issubclass(x, root)]
    return [x for x in found if x.__module__.startswith(module.__name__) and x not in ABSTRACT]


@pytest.mark.parametrize("kind", _concrete(n, n.LogicalNode), ids=lambda k: str(k.__name__))
def test_logical_node(kind: type) -> None:
    for dispatcher in (line,) if kind in ONLY_BOUND else (convert_node, batch.convert_node, line):
        assert dispatcher.dispatch(kind) is not dispatcher.dispatch(object), dispatcher


def _kinds(root: type) -> Iterator[type]:
    """All node classes, wherever they stand. A dataclass with slots leaves the class that it was made of."""
    kind: type
    for kind in root.__subclasses__():
        if vars(sys.modules[kind.__module__]).get(kind.__name__) is kind:
            yield kind
        yield from _kinds(kind)


KINDS = [kind for kind in _kinds(p.PhysicalNode) if kind not in ABSTRACT]
STREAM = [kind for kind in KINDS if not kind.__module__.startswith(BATCH)]
FRAMES = vars(BatchFrames)["make"].dispatcher
PLANNED = [kind for kind in STREAM if not kind.__module__.startswith(VIEW)]


@pytest.mark.parametrize("kind", PLANNED, ids=lambda k: str(k.__name__))
def test_a_physical_node_answers_each_question_without_default(kind: type[p.PhysicalNode]) -> None:
    unanswered = [ask for ask in WITHOUT_DEFAULT if ask.dispatch(kind) is ask.dispatch(object)]
    assert not unanswered
    own_inputs = kind.inputs is not p.PhysicalNode.inputs
    assert not own_inputs or rebuilt.dispatch(kind) is not rebuilt.dispatch(object)
    assert kind is p.Sink or build.dispatch(kind) is not build.dispatch(object)


@pytest.mark.parametrize("kind", STREAM, ids=lambda k: str(k.__name__))
def test_a_node_of_the_view_has_attributes(kind: type) -> None:
    assert attributes.dispatch(kind) is not attributes.dispatch(object)


def test_a_question_names_the_node_that_does_not_answer() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Unheard(p.PhysicalNode):
        @property
        def inputs(self) -> tuple[p.PhysicalNode, ...]:
            return (p.Values(fields=(), rows=()),)

    node = Unheard(fields=())
    other = p.Values(fields=(), rows=((),))
    for ask in (
        lambda: modifications(node),
        lambda: satisfied(node, Updates.BOTH),
        lambda: attributes(node, Form.PREFIX),
        lambda: rebuilt(node, (other,)),
    ):
        with pytest.raises(InternalError, match="Unheard does not say"):
            ask()


@pytest.mark.parametrize("kind", _concrete(b, p.PhysicalNode), ids=lambda k: str(k.__name__))
def test_a_batch_node_becomes_a_frame(kind: type) -> None:
    assert FRAMES.dispatch(kind) is not FRAMES.dispatch(object)


@pytest.mark.parametrize("kind", [k for k in FRAMES.registry if k in KINDS], ids=lambda k: str(k.__name__))
def test_a_node_that_becomes_a_frame_has_attributes(kind: type) -> None:
    """Also one that a stream has, too."""
    shown = IN_VIEW.get(kind, kind)
    assert batch_attributes.dispatch(shown) is not batch_attributes.dispatch(object)
