"""Operators: what the planner, EXPLAIN and stored state know of a node class, one module per operator.

Each module answers the questions (``physical.questions``) about its nodes, in this order: changelog, keys,
time, the running plan, identity, EXPLAIN. A question that a module leaves out has its default. A node class
that no other module names can stand in the module of its operator. The package finds its modules, and
``tidemill.physical`` imports the package.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
