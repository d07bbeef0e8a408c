"""Queries: WITH, SELECT, VALUES and set operations, parentheses; one dispatch by node class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.plan.binder.context import BoundQuery, Context
from tidemill.plan.binder.expressions.binding import Clause, ExpressionBinder, Handler
from tidemill.plan.binder.naming import column_aliases, with_column_names
from tidemill.plan.binder.queries import ordering, select, set_operations
from tidemill.plan.binder.relations import values
from tidemill.plan.binder.scope import Scope
from tidemill.sql.positions import position_of


@dataclass(frozen=True, slots=True)
class TreeBinder:
    """Binds any query tree. It is stateless: its state is in the context."""

    handlers: Mapping[type[exp.Expr], Handler] = field(repr=False)

    def bind(self, tree: exp.Expr, context: Context) -> BoundQuery:
        bind = _KINDS.get(type(tree))
        if bind is None:
            raise NotSupportedError(
                f"{type(tree).__name__} is not supported as a query", position=position_of(tree)
            )
        return bind(self, tree, self._with_ctes(tree, context))

    def expressions(self, context: Context, scope: Scope, clause: Clause) -> ExpressionBinder:
        return ExpressionBinder(
            context=context, scope=scope, queries=self, clause=clause, handlers=self.handlers
        )

    def _with_ctes(self, tree: exp.Expr, context: Context) -> Context:
        clause = tree.args.get("with_") or tree.args.get("with")
        if clause is None:
            return context
        if clause.args.get("recursive"):
            raise NotSupportedError("WITH RECURSIVE is not supported", position=position_of(clause))
        for cte in clause.expressions:
            query, names = self.bind(cte.this, context), column_aliases(cte)
            if names and len(names) != len(query.names):
                message = "Number of columns must match number of query columns"
                raise ValidationError(message, position=position_of(cte))
            context = context.with_cte(cte.alias, with_column_names(query, names, cte))
        return context


def _subquery(binder: TreeBinder, tree: exp.Expr, context: Context) -> BoundQuery:
    inner = binder.bind(tree.this, context)
    return ordering.apply(binder, tree, inner, context)


_KINDS: dict[type[exp.Expr], Callable[[TreeBinder, exp.Expr, Context], BoundQuery]] = {
    exp.Select: select.bind,
    exp.Values: values.bind,
    exp.Union: set_operations.bind,
    exp.Intersect: set_operations.bind,
    exp.Except: set_operations.bind,
    exp.Subquery: _subquery,
}
