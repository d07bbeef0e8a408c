"""What a session is made of, as JSON: options, catalogs and what is in them, current names.

``restored`` makes a session that answers the same statements in the same way. DataFrames and functions that a
Python program registered live in that program alone: they are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidemill.catalog.memory import InMemoryCatalog
from tidemill.catalog.objects import CatalogFunction, CatalogModel
from tidemill.catalog.table import CatalogTable, CatalogView
from tidemill.config.option import Configuration
from tidemill.errors import StateError
from tidemill.session.catalogs.documents import (
    DatabaseDocument,
    database_document,
    function_document,
    model_document,
    object_documents,
)
from tidemill.session.catalogs.reading import read
from tidemill.session.context import SessionContext
from tidemill.session.modules import CORE, Modules

Json = dict[str, Any]
FORMAT = 1


def taken(context: SessionContext, *, whole: bool = False) -> Json:
    """The session as it is now; costs as much as its catalogs are large. ``whole``: also what is in catalogs
    that outlive it, as it is now, where that is not large."""
    catalogs = context.catalogs
    return {
        "format": FORMAT,
        "defaults": dict(context.defaults),
        "options": dict(context.configuration),
        "current": [catalogs.current_catalog, catalogs.current_database],
        "catalogs": [_catalog(c, whole) for c in catalogs.catalogs.values()],
        "temporary": object_documents(catalogs.temporary.values()),
        "functions": [function_document(f) for f in catalogs.functions.temporary() if f.declared is None],
        "models": [model_document(m) for m in catalogs.models.temporary.values()],
        "folders": list(context.module_folders),
        "modules": [context.modules.loaded, context.modules.used],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptCatalog:
    """``databases`` is None of a catalog that outlives the session: it is made again by its options."""

    name: str
    comment: str | None
    options: dict[str, str]
    default: str
    databases: tuple[DatabaseDocument, ...] | None

    def restored(self, context: SessionContext) -> InMemoryCatalog:
        if self.databases is None:
            return context.catalogs.made(self.name, self.options, self.comment)
        made = InMemoryCatalog(self.name, self.default, options=self.options, comment=self.comment)
        made.fill(document.restored() for document in self.databases)
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """What ``taken`` writes."""

    format: int
    defaults: dict[str, str]
    options: dict[str, str]
    current: tuple[str, str]
    catalogs: tuple[_KeptCatalog, ...]
    temporary: tuple[CatalogTable | CatalogView, ...]
    functions: tuple[CatalogFunction, ...]
    folders: tuple[str, ...]
    models: tuple[CatalogModel, ...] = ()
    modules: tuple[list[str], list[str]] = ([CORE], [CORE])


def restored(snapshot: Json, place: str = "session") -> SessionContext:
    """A session as ``snapshot`` has it; StateError, which names the place, where it is damaged or of another
    version."""
    if snapshot.get("format") != FORMAT:
        raise StateError(
            f"The stored session has format {snapshot.get('format')}, which this version does not know",
            hint="Open a new session, or go back to the version that wrote it.",
        )
    kept = read(_Kept, snapshot, place)
    context = SessionContext(Configuration(kept.defaults))
    context.configuration = Configuration(kept.options)
    context.module_folders = kept.folders
    context.modules = Modules(*map(list, kept.modules))
    catalogs = context.catalogs
    catalogs.catalogs = {c.name: c.restored(context) for c in kept.catalogs}
    catalogs.current_catalog, catalogs.current_database = kept.current
    for entry in kept.temporary:
        catalogs.temporary[entry.path] = entry
    for function in kept.functions:
        catalogs.functions.create(function, ignore_if_exists=True)
    for model in kept.models:
        catalogs.models.temporary[model.path] = model
    return context


def _catalog(catalog: InMemoryCatalog, whole: bool) -> Json:
    copied = not catalog.outlives or (whole and catalog.small)
    kept = [database_document(d) for d in catalog.databases.values()] if copied else None
    return {
        "name": catalog.name,
        "comment": catalog.comment,
        "options": catalog.options,
        "default": catalog.default_database,
        "databases": kept,
    }
