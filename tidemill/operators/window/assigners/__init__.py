"""Assigners: the windows of a row. One file per assigner, with its ``KIND``.

The clock makes the windows of ``tumble``, ``hop`` and ``cumulate``, and with ``calendar`` those by months: an
``Assigner`` (see ``assigner``) cuts time into slices, for kernels and as Spark SQL.

The windows of ``session``, ``retractable_sessions`` and ``dynamic_cumulate`` are data-driven: these modules
determine which spans (``spans``) of a key form one window.

``attached`` gives rows their windows over Arrow batches.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from tidemill.operators.window.assigners.kind import WindowKind


@cache
def kinds() -> dict[str, WindowKind]:
    """All window functions by name, from the ``KIND`` of each file of this package."""
    by_name: dict[str, WindowKind] = {}
    for module in iter_modules(__path__):
        kind = getattr(import_module(f"{__name__}.{module.name}"), "KIND", None)
        if isinstance(kind, WindowKind):
            by_name[kind.name] = kind
    return by_name
