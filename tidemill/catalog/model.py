"""Models as the catalog keeps them: what goes in, what comes out, and the options of a provider."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemill.catalog.table import Column, ObjectPath


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogModel:
    """``inputs`` and ``outputs`` are physical columns; none where the model does not say."""

    path: ObjectPath
    inputs: tuple[Column, ...] = ()
    outputs: tuple[Column, ...] = ()
    options: dict[str, str] = field(hash=False)
    comment: str = ""
    temporary: bool = False
