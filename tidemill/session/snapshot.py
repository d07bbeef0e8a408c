"""What a session is made of, as JSON: options, catalogs and what is in them, current names.

``restored`` makes a session that answers the same statements in the same way. DataFrames and functions that a
Python program registered live in that program alone: they are left out.
"""

from __future__ import annotations

from typing import Any

from tidemill.catalog.memory import InMemoryCatalog
from tidemill.config.option import Configuration
from tidemill.errors import StateError
from tidemill.session.catalogs.documents import (
    database_document,
    function_document,
    model_document,
    object_documents,
    restored_database,
    restored_function,
    restored_model,
    restored_object,
)
from tidemill.session.context import SessionContext
from tidemill.session.modules import Modules

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


def restored(snapshot: Json) -> SessionContext:
    """A session as ``snapshot`` has it; StateError where it is of another version."""
    if snapshot.get("format") != FORMAT:
        raise StateError(
            f"The stored session has format {snapshot.get('format')}, which this version does not know",
            hint="Open a new session, or go back to the version that wrote it.",
        )
    context = SessionContext(Configuration(snapshot["defaults"]))
    context.configuration = Configuration(snapshot["options"])
    context.module_folders = tuple(snapshot["folders"])
    if "modules" in snapshot:
        context.modules = Modules(*snapshot["modules"])
    catalogs = context.catalogs
    catalogs.catalogs = {c["name"]: _restored_catalog(c, context) for c in snapshot["catalogs"]}
    catalogs.current_catalog, catalogs.current_database = snapshot["current"]
    for entry in map(restored_object, snapshot["temporary"]):
        catalogs.temporary[entry.path] = entry
    for function in snapshot["functions"]:
        catalogs.functions.create(restored_function(function), ignore_if_exists=True)
    for model in map(restored_model, snapshot.get("models", ())):
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


def _restored_catalog(kept: Json, context: SessionContext) -> InMemoryCatalog:
    if kept["databases"] is None:
        return context.catalogs.made(kept["name"], kept["options"], kept["comment"])
    made = InMemoryCatalog(kept["name"], kept["default"], options=kept["options"], comment=kept["comment"])
    made.fill(map(restored_database, kept["databases"]))
    return made
