"""NULLs on their way into NOT NULL columns: of a sink's table, or of the result of a SELECT.

Types say where NULL can come from, but data from outside need not keep to what a table declares. So a
column that is a table's NOT NULL column, as it was read, is checked as nullable ones are. Computed columns
are taken at their word: a plan without such columns pays nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch

from tidemill.config.option import Configuration
from tidemill.config.sink_options import NOT_NULL_ENFORCER
from tidemill.functions.literals import literal_sql
from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.plan.expressions import Cast, Expr, InputRef
from tidemill.types.logical import STRING, Field
from tidemill.types.physical import quote

Node = p.PhysicalNode | b.BatchNode


@dataclass(frozen=True, slots=True, kw_only=True)
class NotNull:
    """``required``: per query column that must not be NULL its name in the sink."""

    required: Mapping[str, str]
    drops: bool

    @property
    def condition(self) -> str | None:
        """What a row must meet to be kept; None where a bad one fails instead."""
        return " AND ".join(f"{quote(c)} IS NOT NULL" for c in self.required) if self.drops else None

    def checks(self, column: str) -> bool:
        return not self.drops and column in self.required

    def expression(self, column: str) -> str:
        """The column; it fails on NULL if that is asked for."""
        return _enforced(column, self.required[column]) if self.checks(column) else quote(column)


def not_null(
    root: Node, columns: tuple[str, ...], targets: tuple[Field, ...], config: Configuration
) -> NotNull | None:
    """What to check of the rows of ``root``, whose fields go by ``columns``, for a sink of ``targets``."""
    required = {
        column: target.name
        for place, (column, target) in enumerate(zip(columns, targets, strict=False))
        if not target.type.nullable and (root.fields[place].type.nullable or _declared(root, place))
    }
    if not required:
        return None
    return NotNull(required=required, drops=config.read(NOT_NULL_ENFORCER).upper() == "DROP")


@singledispatch
def _declared(node: Node, place: int) -> bool:
    """Whether field ``place`` is a column that a table declares NOT NULL, as it was read or cast.

    Where nothing else is said, the fields of a node are those of its first input, then its own.
    """
    first = node.inputs[:1]
    return bool(first) and place < len(first[0].fields) and _declared(first[0], place)


@_declared.register
def _(node: p.TableSourceScan | b.TableSourceScan, place: int) -> bool:
    return not node.fields[place].type.nullable


@_declared.register
def _(node: p.Calc | b.Calc, place: int) -> bool:
    return _passes(node.projections[place], node.input)


@_declared.register
def _(node: p.Expand | b.Expand, place: int) -> bool:
    return _passes(node.projections[0][place], node.input)


@_declared.register
def _(node: p.GroupAggregate | p.GlobalGroupAggregate, place: int) -> bool:
    core = node.core
    return core is not None and place < len(core.keys) and _declared(core.input, core.keys[place])


@_declared.register
def _(node: b.Aggregate, place: int) -> bool:
    return place < len(node.keys) and _declared(node.source, node.keys[place])


@_declared.register
def _(node: p.Join | b.Join, place: int) -> bool:
    width = len(node.left.fields)
    return _declared(node.left, place) if place < width else _declared(node.right, place - width)


@_declared.register
def _(node: p.Union | b.Union, place: int) -> bool:
    return any(_declared(branch, place) for branch in node.branches)


def _passes(expression: Expr, below: Node) -> bool:
    while isinstance(expression, Cast):
        expression = expression.operand
    return isinstance(expression, InputRef) and _declared(below, expression.index)


def _enforced(column: str, target: str) -> str:
    message = (
        f"Column '{target}' is NOT NULL, however, a null value is being written into it. You can set job "
        f"configuration '{NOT_NULL_ENFORCER.key}'='DROP' to suppress this exception and drop such records "
        "silently."
    )
    return f"coalesce({quote(column)}, raise_error({literal_sql(message, STRING)}))"
