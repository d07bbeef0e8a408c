"""Built-in functions of a table, ``TABLE(f(TABLE t, ...))``, from the files that declare them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from sqlglot import exp

from tidemill.plan.binder import relations
from tidemill.plan.binder.context import Context
from tidemill.plan.binder.expressions.binding import QueryBinder
from tidemill.plan.binder.relations.tables import Source

Bind = Callable[[QueryBinder, exp.Expr, Context], Source]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """``names``: gives the upper-case names of the functions that ``bind`` binds. Example::

    BUILT_IN = BuiltIn(names=lambda: ("TO_CHANGELOG", "FROM_CHANGELOG"), bind=bind)
    """

    names: Callable[[], Collection[str]]
    bind: Bind


@cache
def built_in() -> Mapping[str, Bind]:
    """By name, from the ``BUILT_IN`` of each file of this package."""
    by_name: dict[str, Bind] = {}
    for module in iter_modules(relations.__path__):
        family = getattr(import_module(f"{relations.__name__}.{module.name}"), "BUILT_IN", None)
        if isinstance(family, BuiltIn):
            by_name |= dict.fromkeys(family.names(), family.bind)
    return by_name
