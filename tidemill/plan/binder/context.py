"""The context in which a query is bound: environment, CTEs, enclosing scopes, views being expanded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from tidemill.catalog.table import ObjectPath
from tidemill.plan.binder.environment import Environment
from tidemill.plan.binder.scope import Scope
from tidemill.plan.nodes import LogicalNode
from tidemill.sql.full_text.names import FullNames
from tidemill.types.logical import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundQuery:
    """A bound query: ``names`` are its columns as the enclosing query sees them. Names may repeat."""

    plan: LogicalNode
    names: tuple[str, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        """The plan's types under the visible names."""
        return tuple(Field(n, f.type) for n, f in zip(self.names, self.plan.fields, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """``scopes``: the enclosing queries' rows, innermost first. ``views``: being expanded, to find cycles.
    ``untyped_null``: whether a bare NULL column is allowed; INSERT gives it the sink column's type.
    ``full_names``: records the full name of each name in the tree."""

    environment: Environment
    catalog: str
    database: str
    ctes: Mapping[str, BoundQuery] = field(default_factory=dict)
    scopes: tuple[Scope, ...] = ()
    views: tuple[ObjectPath, ...] = ()
    untyped_null: bool = False
    full_names: FullNames | None = None

    def alias(self, node: exp.Expr) -> str:
        """The name of an item of FROM. Without a name: '', or the name that ``full_names`` gives it."""
        if node.alias or self.full_names is None:
            return str(node.alias)
        return self.full_names.relation(node)

    def inside(self, scope: Scope) -> Context:
        """The context of a subquery of a query whose row is ``scope``."""
        return replace(self, scopes=(scope, *self.scopes), untyped_null=False)

    def with_cte(self, name: str, query: BoundQuery) -> Context:
        return replace(self, ctes={**self.ctes, name: query})

    def path(self, parts: tuple[str, ...]) -> ObjectPath:
        """The full path of a written name, completed with the current catalog and database."""
        full = (self.catalog, self.database)[: 3 - len(parts)] + parts
        return ObjectPath(*full)


MODE = "execution.runtime-mode"


def is_streaming(context: Context) -> bool:
    """Whether the query will run as a stream; Flink's default is that it does."""
    return context.environment.options.get(MODE, "streaming").lower() != "batch"
