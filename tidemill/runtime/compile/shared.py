"""Physical stream plan -> exec graph, equal parts once.

``compile_node(node, context, sequenced)`` gives the exec node whose frame has the fields of ``node``;
``sequenced`` asks for the ``$seq`` column: it is made at the sources, and only where an operator above
depends on arrival order. Nodes of one digest become one exec node. It gives what any of its consumers
needs, -U and ``$seq``; those that want less leave it out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import TypeVar

from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.deep_calls import with_room
from tidemill.errors import NotSupportedError
from tidemill.physical import nodes as p
from tidemill.physical.digests import PASSING
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.schemas import names
from tidemill.types.physical import quote

T = TypeVar("T")


@singledispatch
def build(node: p.PhysicalNode, context: CompileContext, sequenced: bool) -> g.ExecNode:
    """The exec node of one physical node, by its kind; others ask for it through ``compile_node``."""
    raise NotSupportedError(f"{type(node).__name__} in streaming mode is not supported yet")


def compiled(context: CompileContext, compile_plans: Callable[[], T]) -> T:
    """The result of ``compile_plans``, which is called again until all nodes that must give ``$seq`` are
    known. Their number only grows, so the calls end; without shared nodes one call is enough. If a plan is
    too deep for the stack, the compilation starts again with more room."""
    return with_room(lambda: _settled(context, compile_plans))


def _settled(context: CompileContext, compile_plans: Callable[[], T]) -> T:
    while True:
        context.restart()
        made = compile_plans()
        if not context.behind:
            return made


def compile_node(node: p.PhysicalNode, context: CompileContext, sequenced: bool) -> g.ExecNode:
    if isinstance(node, PASSING):
        return build(node, context, sequenced)
    digest = context.digests.of(node)
    if sequenced:
        context.ask_sequence(digest)
    made = context.made.get(digest)
    if made is None:
        # The inputs are compiled in between; they cannot have this digest.
        made = build(context.fullest(digest, node), context, digest in context.sequenced)
        context.made[digest] = made
    if made.timed and id(node) not in context.timed:
        made = g.without_time(made)
    if RowKind.UPDATE_BEFORE in made.kinds - node.traits.kinds:
        made = without_update_before(made)
    return g.choice(made, made.columns, made.columns, False) if made.sequenced and not sequenced else made


def transparent(node: p.Unary, context: CompileContext, sequenced: bool) -> g.ExecNode:
    """The node changes nothing but traits; its fields are its input's by position."""
    below = compile_node(node.input, context, sequenced)
    return below if below.columns == names(node.fields) else g.renamed(below, names(node.fields))


def without_update_before(node: g.ExecNode) -> g.Select:
    return g.Select(
        columns=node.columns,
        kinds=node.kinds - {RowKind.UPDATE_BEFORE},
        sequenced=node.sequenced,
        input=node,
        expressions=tuple(map(quote, node.columns)),
        references=node.columns,
        condition=f"{quote(KIND_COLUMN)} <> {int(RowKind.UPDATE_BEFORE)}",
    )
