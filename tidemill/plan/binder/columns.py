"""Columns collected for a projection: equal expressions share one, names stay unique."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidemill.plan import nodes as n
from tidemill.plan.binder.scope import unique_name
from tidemill.plan.expressions import Expr, InputRef
from tidemill.types import logical as t


@dataclass(slots=True)
class Columns:
    """The columns of a projection under construction: equal expressions share one column."""

    expressions: list[Expr] = field(default_factory=list)
    fields: list[t.Field] = field(default_factory=list)

    def add(self, expr: Expr, name: str) -> int:
        if expr in self.expressions:
            return self.expressions.index(expr)
        return self.append(expr, name)

    def append(self, expr: Expr, name: str) -> int:
        unique = unique_name(name, {f.name for f in self.fields})
        self.expressions.append(expr)
        self.fields.append(t.Field(unique, expr.type))
        return len(self.expressions) - 1

    def next_name(self) -> str:
        return f"$f{len(self.fields)}"

    def project(self, source: n.LogicalNode, bundle: n.Bundle | None = None) -> n.LogicalNode:
        return n.Project(
            fields=tuple(self.fields), input=source, expressions=tuple(self.expressions), bundle=bundle
        )


def column_name(expr: Expr, fields: Sequence[t.Field], default: str) -> str:
    return fields[expr.index].name if isinstance(expr, InputRef) else default
