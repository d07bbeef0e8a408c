"""Grouping sets over windows: moves the Expand, which copies rows per set, below the window table function.

    before:  rows -> window -> one copy per grouping set
    after:   rows -> one copy per grouping set -> window

So the aggregation reads the window table function directly, as an aggregation without sets does. And
data-driven windows contain the rows of one combination of a set's keys."""

from __future__ import annotations

from dataclasses import replace

from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr, InputRef
from tidemill.plan.rewrite import input_indexes, replace_inputs
from tidemill.types.logical import Field


def below_windows(expand: n.Expand, keys: tuple[int, ...] = ()) -> n.LogicalNode | None:
    """The rows of ``expand`` with the window above it. None if no window is directly below ``expand``, or if
    ``expand`` changes or computes with the window's columns. ``keys``: the fields of ``expand`` that
    partition data-driven windows. An Expand with one projection becomes a Project."""
    project, function = _parts(expand)
    if function is None:
        return None
    width = len(function.input.fields)
    roles = [x.index - width if isinstance(x, InputRef) and x.index >= width else None for x in project]
    if any(role is None and _reads_window(x, width) for x, role in zip(project, roles, strict=True)):
        return None
    plain = [i for i, role in enumerate(roles) if role is None]
    column_indexes = {i: place for place, i in enumerate(plain)}
    window_roles: list[int | None] = []
    for column in zip(*expand.projections, strict=True):
        read = {i for x in column for i in input_indexes(x)}
        if not any(roles[i] is not None for i in read):
            window_roles.append(None)
        elif len(set(column)) == 1 and isinstance(column[0], InputRef):
            window_roles.append(roles[column[0].index])
        else:
            return None
    own = [i for i, role in enumerate(window_roles) if role is None]
    time = _renamed_apart(function.input.fields[function.time], expand)
    below = n.Project(
        fields=(*(expand.input.fields[i] for i in plain), time),
        input=function.input,
        expressions=(*(project[i] for i in plain), InputRef(type=time.type, index=function.time)),
    )
    fields = (*(expand.fields[i] for i in own), time)
    rows = tuple(
        (
            *(replace_inputs(row[i], lambda j: _moved(expand, j, column_indexes)) for i in own),
            InputRef(type=time.type, index=len(plain)),
        )
        for row in expand.projections
    )
    expanded: n.LogicalNode = n.Expand(fields=fields, input=below, projections=rows)
    if len(rows) == 1:
        expanded = n.Project(fields=fields, input=below, expressions=rows[0])
    window = replace(
        function,
        fields=(*expanded.fields, *function.fields[width:]),
        input=expanded,
        time=len(own),
        partition=tuple(own.index(k) for k in keys if k in own),
    )
    output_columns = [
        own.index(i) if role is None else len(own) + 1 + role for i, role in enumerate(window_roles)
    ]
    return n.Project(
        fields=expand.fields,
        input=window,
        expressions=tuple(InputRef(type=window.fields[i].type, index=i) for i in output_columns),
    )


def _parts(expand: n.Expand) -> tuple[tuple[Expr, ...], n.WindowTableFunction | None]:
    """The expressions that ``expand`` reads, over the fields of the window table function below, and it."""
    below = expand.input
    expressions: tuple[Expr, ...] = tuple(InputRef(type=f.type, index=i) for i, f in enumerate(below.fields))
    if isinstance(below, n.Project):
        expressions, below = below.expressions, below.input
    return expressions, below if isinstance(below, n.WindowTableFunction) else None


def _reads_window(expression: Expr, width: int) -> bool:
    return any(i >= width for i in input_indexes(expression))


def _moved(expand: n.Expand, index: int, column_indexes: dict[int, int]) -> Expr:
    return InputRef(type=expand.input.fields[index].type, index=column_indexes[index])


def _renamed_apart(field: Field, expand: n.Expand) -> Field:
    """``field`` under a name that neither ``expand`` nor its input has."""
    names = {f.name for f in (*expand.fields, *expand.input.fields)}
    name = field.name
    while name in names:
        name += "$"
    return Field(name, field.type)
