"""User functions as the catalog keeps them."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.catalog.table import ObjectPath


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogFunction:
    """``implementation`` is what follows AS, ``module.attribute`` for LANGUAGE PYTHON.

    ``path`` is None for a temporary system function, which lives in no database.
    """

    name: str
    path: ObjectPath | None
    implementation: str
    language: str
    temporary: bool = False
