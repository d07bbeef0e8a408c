"""What a query is bound in: environment, CTEs, enclosing scopes, and the views being expanded."""

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
    """A bound query: ``names`` are its columns as the query around it sees them (may repeat)."""

    plan: LogicalNode
    names: tuple[str, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        """The plan's types under the visible names."""
        return tuple(Field(n, f.type) for n, f in zip(self.names, self.plan.fields, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """``scopes``: the enclosing queries' rows, innermost first. ``views``: guards against cycles.
    ``untyped_null``: a bare NULL column is fine, INSERT gives it the sink column's type. ``full_names``:
    where to note what the names in the tree mean."""

    environment: Environment
    catalog: str
    database: str
    ctes: Mapping[str, BoundQuery] = field(default_factory=dict)
    scopes: tuple[Scope, ...] = ()
    views: tuple[ObjectPath, ...] = ()
    untyped_null: bool = False
    full_names: FullNames | None = None

    def alias(self, node: exp.Expr) -> str:
        """The name of an item of FROM; '' where it has none, or the name that it gets in full names."""
        if node.alias or self.full_names is None:
            return str(node.alias)
        return self.full_names.relation(node)

    def inside(self, scope: Scope) -> Context:
        """The context of a subquery within a query whose row is ``scope``."""
        return replace(self, scopes=(scope, *self.scopes), untyped_null=False)

    def with_cte(self, name: str, query: BoundQuery) -> Context:
        return replace(self, ctes={**self.ctes, name: query})

    def path(self, parts: tuple[str, ...]) -> ObjectPath:
        """The full path of a name as written, by the current catalog and database."""
        full = (self.catalog, self.database)[: 3 - len(parts)] + parts
        return ObjectPath(*full)


MODE = "execution.runtime-mode"


def is_streaming(context: Context) -> bool:
    """Whether the query will run as a stream; Flink's default is that it does."""
    return context.environment.options.get(MODE, "streaming").lower() != "batch"
