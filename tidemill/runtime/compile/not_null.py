"""NULLs on their way into NOT NULL columns: of a sink's table, or of the result of a SELECT.

Types say where NULL can come from, but data from outside need not keep to what a table declares. So below
a sink whose query reads NOT NULL columns of tables, all its NOT NULL columns are checked; elsewhere only
those whose query column is nullable. A plan that reads none pays nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.config.option import Configuration
from tidemill.config.sink_options import NOT_NULL_ENFORCER
from tidemill.functions.literals import literal_sql
from tidemill.physical import nodes as p
from tidemill.plan import nodes as n
from tidemill.types.logical import STRING, Field
from tidemill.types.physical import quote


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
    root: p.PhysicalNode | n.LogicalNode,
    columns: tuple[str, ...],
    targets: tuple[Field, ...],
    config: Configuration,
) -> NotNull | None:
    """What to check of the rows of ``root``, whose fields go by ``columns``, for a sink of ``targets``."""
    doubted = _reads_not_null(root)
    required = {
        c: target.name
        for c, field, target in zip(columns, root.fields, targets, strict=False)
        if not target.type.nullable and (doubted or field.type.nullable)
    }
    if not required:
        return None
    return NotNull(required=required, drops=config.read(NOT_NULL_ENFORCER).upper() == "DROP")


def _reads_not_null(node: p.PhysicalNode | n.LogicalNode) -> bool:
    if isinstance(node, p.TableSourceScan | n.Scan):
        return any(not f.type.nullable for f in node.fields)
    return any(map(_reads_not_null, node.inputs))


def _enforced(column: str, target: str) -> str:
    message = (
        f"Column '{target}' is NOT NULL, however, a null value is being written into it. You can set job "
        f"configuration '{NOT_NULL_ENFORCER.key}'='DROP' to suppress this exception and drop such records "
        "silently."
    )
    return f"coalesce({quote(column)}, raise_error({literal_sql(message, STRING)}))"
