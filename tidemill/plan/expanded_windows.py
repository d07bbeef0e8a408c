"""Grouping sets over windows: rows are given once per set before they are given their windows, not after.

So an aggregation of every set goes window by window over what the window table function reads, as one without
sets does, and windows that rows make are made of the rows of one combination of a set's keys."""

from __future__ import annotations

from dataclasses import replace

from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr, InputRef
from tidemill.plan.rewrite import input_indexes, replace_inputs
from tidemill.types.logical import Field


def below_windows(expand: n.Expand, keys: tuple[int, ...] = ()) -> n.LogicalNode | None:
    """The rows of ``expand``, with the windows above it; None where no window is right below, or something
    but the columns of sets that all have them looks at its columns. ``keys``: fields of ``expand`` by whose
    values rows make windows. One set is a projection."""
    project, function = _parts(expand)
    if function is None:
        return None
    width = len(function.input.fields)
    roles = [x.index - width if isinstance(x, InputRef) and x.index >= width else None for x in project]
    if any(role is None and _reads_window(x, width) for x, role in zip(project, roles, strict=True)):
        return None
    plain = [i for i, role in enumerate(roles) if role is None]
    places = {i: place for place, i in enumerate(plain)}
    handed: list[int | None] = []
    for column in zip(*expand.projections, strict=True):
        read = {i for x in column for i in input_indexes(x)}
        if not any(roles[i] is not None for i in read):
            handed.append(None)
        elif len(set(column)) == 1 and isinstance(column[0], InputRef):
            handed.append(roles[column[0].index])
        else:
            return None
    own = [i for i, role in enumerate(handed) if role is None]
    time = _free(function.input.fields[function.time], expand)
    below = n.Project(
        fields=(*(expand.input.fields[i] for i in plain), time),
        input=function.input,
        expressions=(*(project[i] for i in plain), InputRef(type=time.type, index=function.time)),
    )
    fields = (*(expand.fields[i] for i in own), time)
    rows = tuple(
        (
            *(replace_inputs(row[i], lambda j: _moved(expand, j, places)) for i in own),
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
    shown = [own.index(i) if role is None else len(own) + 1 + role for i, role in enumerate(handed)]
    return n.Project(
        fields=expand.fields,
        input=window,
        expressions=tuple(InputRef(type=window.fields[i].type, index=i) for i in shown),
    )


def _parts(expand: n.Expand) -> tuple[tuple[Expr, ...], n.WindowTableFunction | None]:
    """What ``expand`` reads, over the fields of the window table function below it."""
    below = expand.input
    expressions: tuple[Expr, ...] = tuple(InputRef(type=f.type, index=i) for i, f in enumerate(below.fields))
    if isinstance(below, n.Project):
        expressions, below = below.expressions, below.input
    return expressions, below if isinstance(below, n.WindowTableFunction) else None


def _reads_window(expression: Expr, width: int) -> bool:
    return any(i >= width for i in input_indexes(expression))


def _moved(expand: n.Expand, index: int, places: dict[int, int]) -> Expr:
    return InputRef(type=expand.input.fields[index].type, index=places[index])


def _free(field: Field, expand: n.Expand) -> Field:
    """``field`` under a name that neither ``expand`` nor its input has."""
    taken = {f.name for f in (*expand.fields, *expand.input.fields)}
    name = field.name
    while name in taken:
        name += "$"
    return Field(name, field.type)
