"""Top-N: a filter on ROW_NUMBER, RANK or DENSE_RANK becomes a Rank, of windows a WindowRank.

The rank column is only kept where something above uses it; a range of one rank gives it as a constant.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from tidemill.config.option import Configuration
from tidemill.physical import nodes as p
from tidemill.physical.conditions import columns, conjunction, conjuncts, constant, substituted
from tidemill.physical.emit import emit
from tidemill.physical.finish import exchange, finish, references
from tidemill.physical.traits.changelog_mode import insert_only
from tidemill.physical.windows import attached_window
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Expr, InputRef, Literal, OverCall, SortKey
from tidemill.plan.windows import WindowColumns, window_columns

_FUNCTIONS = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK"})
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True, slots=True)
class TopN:
    """A filter on the rank of an Over. ``other_conditions``: of the filter, over the Over's fields."""

    over: n.Over
    start: int
    end: int
    other_conditions: tuple[Expr, ...]

    @property
    def call(self) -> OverCall:
        return self.over.calls[0]

    @property
    def column(self) -> int:
        """The index of the rank in the Over's fields."""
        return len(self.over.fields) - 1


def lowered(node: n.Filter) -> n.Project | None:
    """Filter over Project over Over as Project over Filter over Over; None for other nodes."""
    project = node.input
    if not isinstance(project, n.Project) or not isinstance(project.input, n.Over):
        return None
    condition = substituted(node.condition, project.expressions)
    below = n.Filter(fields=project.input.fields, input=project.input, condition=condition)
    return n.Project(fields=project.fields, input=below, expressions=project.expressions)


def top_n(node: n.LogicalNode) -> TopN | None:
    """The Top-N that ``node`` (a Filter right above an Over) means; None if it is none."""
    if not isinstance(node, n.Filter) or not isinstance(node.input, n.Over):
        return None
    over = node.input
    if len(over.calls) != 1 or over.calls[0].function not in _FUNCTIONS:
        return None
    rank = len(over.fields) - 1
    start, end, other_conditions = 1, None, []
    for part in conjuncts(node.condition):
        bounds = _bounds(part, rank)
        if bounds is None:
            other_conditions.append(part)
            continue
        start = max(start, bounds[0])
        end = bounds[1] if end is None else end if bounds[1] is None else min(end, bounds[1])
    if end is None or end < start:
        return None
    return TopN(over, start, end, tuple(other_conditions))


def _bounds(part: Expr, rank: int) -> tuple[int, int | None] | None:
    """The ranks that ``part`` accepts, both ends inclusive; None if it is no condition on the rank."""
    if not isinstance(part, Call):
        return None
    if part.function == "BETWEEN" and len(part.args) == 3 and _is_column(part.args[0], rank):
        low, high = constant(part.args[1]), constant(part.args[2])
        return (low, high) if isinstance(low, int) and isinstance(high, int) else None
    if part.function not in _FLIPPED or len(part.args) != 2:
        return None
    left, right = part.args
    operator = part.function
    if _is_column(right, rank):
        left, right, operator = right, left, _FLIPPED[operator]
    limit = constant(right)
    if not _is_column(left, rank) or not isinstance(limit, int):
        return None
    return {
        "=": (limit, limit),
        "<": (1, limit - 1),
        "<=": (1, limit),
        ">": (limit + 1, None),
        ">=": (limit, None),
    }[operator]


def _is_column(expr: Expr, index: int) -> bool:
    return isinstance(expr, InputRef) and expr.index == index


def plan_rank(
    top: TopN,
    child: p.PhysicalNode,
    used: frozenset[int],
    *,
    final: frozenset[str],
    state_ttl: int,
    config: Configuration,
) -> tuple[p.PhysicalNode, tuple[Expr, ...]]:
    """The Rank, and for each field of the Over the expression over it that gives that field.

    ``used``: the Over's fields that are used above; the rank's expression is NULL if the rank is not.
    ``final``: the time attributes (ROWTIME, PROCTIME) by which an emitted first row stays the first.
    """
    needs_rank = top.column in used or any(top.column in columns(x) for x in top.other_conditions)
    single = top.start == top.end and top.call.function == "ROW_NUMBER"
    rank = _rank(top, child, with_rank=needs_rank and not single, final=final, state_ttl=state_ttl)
    windows = window_columns(top.over.input)
    if windows is not None and windows.tell_window(top.call.partition):
        rank = _window_rank(rank, windows, config)
    outputs: list[Expr] = list(references(top.over.input.fields))
    field = top.over.fields[top.column]
    if rank.with_rank:
        outputs.append(InputRef(type=field.type, index=top.column))
    else:
        outputs.append(Literal(type=field.type, value=top.start if needs_rank else None))
    return rank, tuple(outputs)


def _rank(
    top: TopN,
    child: p.PhysicalNode,
    *,
    with_rank: bool,
    final: frozenset[str],
    state_ttl: int,
) -> p.Rank:
    call = top.call
    append = insert_only(child)
    time = time_attribute(call.order, child) if append else ""
    top_one = top.start == top.end == 1 and call.function == "ROW_NUMBER"
    return finish(
        p.Rank(
            fields=top.over.fields if with_rank else top.over.input.fields,
            input=exchange(child, call.partition),
            function=call.function,
            partition=call.partition,
            order=call.order,
            start=top.start,
            end=top.end,
            with_rank=with_rank,
            time=time,
            insert_only=top_one and time in final and call.order[0].ascending,
            state_ttl=state_ttl,
        )
    )


def _window_rank(rank: p.Rank, windows: WindowColumns, config: Configuration) -> p.WindowRank:
    """``rank``, of whole windows."""
    keys = tuple(i for i in rank.partition if i not in windows.all)
    attached = attached_window(windows, rank.partition)
    emitted = emit(config, rowtime=not attached.window.proctime)
    parts = {f.name: getattr(rank, f.name) for f in dataclasses.fields(rank)}
    parts |= {"input": exchange(rank.input.inputs[0], keys), "insert_only": emitted is None}
    return finish(p.WindowRank(**parts, attached=attached, keys=keys, emit=emitted))


def remaining_condition(top: TopN, outputs: tuple[Expr, ...]) -> Expr | None:
    """The filter's other conditions, over the Rank."""
    return conjunction(substituted(x, outputs) for x in top.other_conditions)


def time_attribute(order: tuple[SortKey, ...], node: p.PhysicalNode) -> str:
    """ROWTIME or PROCTIME if such an attribute is the only sort key; otherwise ''."""
    return node.fields[order[0].index].type.time_attribute if len(order) == 1 else ""
