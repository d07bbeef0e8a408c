"""Column names of queries: aliases, derived names, and lists of column aliases."""

from __future__ import annotations

from sqlglot import exp

from tidemill.errors import ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import BoundQuery
from tidemill.plan.expressions import Expr, InputRef
from tidemill.sql.positions import position_of
from tidemill.sql.reserved import BARE_FUNCTIONS


def derived_name(node: exp.Expr, ordinal: int) -> str:
    """The name of a select item: its alias, a column's last part, else EXPR$ordinal.

    A function that is written without parentheses (CURRENT_DATE) counts as a name.
    """
    if isinstance(node, exp.Alias):
        return str(node.alias)
    if isinstance(node, exp.Column):
        return str(node.name)
    if isinstance(node, exp.Anonymous) and not node.expressions and node.name.upper() in BARE_FUNCTIONS:
        return str(node.name)
    return f"EXPR${ordinal}"


def column_aliases(node: exp.Expr) -> list[str]:
    """The names of ``AS t(a, b)``."""
    alias = node.args.get("alias")
    return [c.name for c in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []


def with_column_names(query: BoundQuery, names: list[str], node: exp.Expr) -> BoundQuery:
    """The query with the column names of ``AS t(a, b)``. An alias list names all columns or none."""
    if not names:
        return query
    if len(names) != len(query.names):
        listed = ", ".join(f"'{c}'" for c in query.names)
        raise ValidationError(
            "List of column aliases must have same degree as table; table has"
            f" {len(query.names)} columns ({listed}), whereas alias list has {len(names)} columns",
            position=position_of(node),
        )
    return BoundQuery(plan=query.plan, names=tuple(names))


def all_columns(plan: n.LogicalNode) -> tuple[Expr, ...]:
    """Every column of ``plan`` as a reference to it."""
    return tuple(InputRef(type=f.type, index=i) for i, f in enumerate(plan.fields))
