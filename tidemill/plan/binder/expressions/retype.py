"""Derives types again after an input became nullable, as by an outer join or GROUPING SETS."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.plan.binder.environment import Environment
from tidemill.plan.binder.expressions import calls
from tidemill.plan.expressions import Call, Cast, Expr, FieldAccess
from tidemill.plan.rewrite import map_expr
from tidemill.types import logical as t


@dataclass(frozen=True, slots=True)
class Retype:
    """Resolves every call again from its arguments. Without an environment it changes nothing."""

    environment: Environment | None

    @classmethod
    def none(cls) -> Retype:
        return cls(None)

    def fix(self, expr: Expr) -> Expr:
        return expr if self.environment is None else map_expr(expr, self._one)

    def _one(self, expr: Expr) -> Expr:
        assert self.environment is not None
        if isinstance(expr, Call):
            return calls.call(self.environment, expr.function, expr.args, None, expr.options)
        if isinstance(expr, Cast) and expr.operand.type.nullable:
            return replace(expr, type=expr.type.with_nullable(True))
        if isinstance(expr, FieldAccess):
            row = expr.operand.type
            assert isinstance(row, t.RowType)
            field_type = row.fields[expr.index].type
            return replace(expr, type=field_type.with_nullable(field_type.nullable or row.nullable))
        return expr
