"""User functions and models as the catalog keeps them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemill.catalog.table import Column, ObjectPath
from tidemill.user_functions.kinds import UserFunction


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
    declared: UserFunction | None = None
    """The function itself, where a Python program registered it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogModel:
    """``inputs`` and ``outputs`` are physical columns; none where the model does not say."""

    path: ObjectPath
    inputs: tuple[Column, ...] = ()
    outputs: tuple[Column, ...] = ()
    options: dict[str, str] = field(hash=False)
    comment: str = ""
    temporary: bool = False
