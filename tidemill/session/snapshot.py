"""What a session is made of, as JSON: options, catalogs and what is in them, current names.

``restored`` makes a session that answers the same statements in the same way. DataFrames and functions that a
Python program registered live in that program alone: they are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from tidemill.catalog.function import CatalogFunction
from tidemill.catalog.memory import Database, InMemoryCatalog
from tidemill.catalog.table import (
    CatalogObject,
    CatalogTable,
    CatalogView,
    Column,
    ColumnKind,
    ObjectPath,
    WatermarkSpec,
)
from tidemill.config.option import Configuration
from tidemill.errors import StateError
from tidemill.session.context import SessionContext
from tidemill.sql.types import parse_type
from tidemill.types import logical as t

Json = dict[str, Any]
FORMAT = 1


def taken(context: SessionContext) -> Json:
    """The session as it is now; costs as much as its catalogs are large."""
    catalogs = context.catalogs
    return {
        "format": FORMAT,
        "defaults": dict(context.defaults),
        "options": dict(context.configuration),
        "current": [catalogs.current_catalog, catalogs.current_database],
        "catalogs": [_catalog(c) for c in catalogs.catalogs.values()],
        "temporary": _objects(catalogs.temporary.values()),
        "functions": [_function(f) for f in catalogs.functions.temporary() if f.declared is None],
        "folders": list(context.module_folders),
    }


def restored(snapshot: Json) -> SessionContext:
    """A session as ``snapshot`` has it; StateError where it is of another version."""
    if snapshot.get("format") != FORMAT:
        raise StateError(
            f"A session is kept in form {snapshot.get('format')}, which this version does not know",
            hint="Open a new session, or go back to the version that wrote it.",
        )
    context = SessionContext(Configuration(snapshot["defaults"]))
    context.configuration = Configuration(snapshot["options"])
    context.module_folders = tuple(snapshot["folders"])
    catalogs = context.catalogs
    catalogs.catalogs = {c["name"]: _restored_catalog(c) for c in snapshot["catalogs"]}
    catalogs.current_catalog, catalogs.current_database = snapshot["current"]
    for entry in map(_restored_object, snapshot["temporary"]):
        catalogs.temporary[entry.path] = entry
    for function in snapshot["functions"]:
        catalogs.functions.create(_restored_function(function), ignore_if_exists=True)
    return context


def _catalog(catalog: InMemoryCatalog) -> Json:
    return {
        "name": catalog.name,
        "comment": catalog.comment,
        "options": catalog.options,
        "default": catalog.default_database,
        "databases": [_database(d) for d in catalog.databases.values()],
    }


def _restored_catalog(kept: Json) -> InMemoryCatalog:
    made = InMemoryCatalog(kept["name"], kept["default"], options=kept["options"], comment=kept["comment"])
    made.databases = {d["name"]: _restored_database(d) for d in kept["databases"]}
    return made


def _database(database: Database) -> Json:
    return {
        "name": database.name,
        "comment": database.comment,
        "properties": database.properties,
        "objects": _objects(database.tables.values()),
        "functions": [_function(f) for f in database.functions.values() if f.declared is None],
    }


def _restored_database(kept: Json) -> Database:
    objects = map(_restored_object, kept["objects"])
    functions = map(_restored_function, kept["functions"])
    return Database(
        name=kept["name"],
        comment=kept["comment"],
        properties=kept["properties"],
        tables={entry.path.name: entry for entry in objects},
        functions={function.name.lower(): function for function in functions},
    )


def _objects(entries: Iterable[CatalogObject]) -> list[Json]:
    return [_object(e) for e in entries if isinstance(e, CatalogTable | CatalogView)]


def _object(entry: CatalogTable | CatalogView) -> Json:
    kept = asdict(entry) | {"kind": "table" if isinstance(entry, CatalogTable) else "view"}
    if isinstance(entry, CatalogTable):
        columns = (asdict(c) | {"type": str(c.type), "kind": c.kind.value} for c in entry.columns)
        kept["columns"] = list(columns)
    return kept


def _restored_object(kept: Json) -> CatalogTable | CatalogView:
    fields: Json = {k: tuple(v) if isinstance(v, list) else v for k, v in kept.items() if k != "kind"}
    fields["path"] = ObjectPath(**kept["path"])
    if kept["kind"] == "view":
        return CatalogView(**fields)
    fields["columns"] = tuple(map(_restored_column, kept["columns"]))
    if kept["watermark"] is not None:
        fields["watermark"] = WatermarkSpec(**kept["watermark"])
    return CatalogTable(**fields)


def _restored_column(kept: Json) -> Column:
    return Column(**{**kept, "type": type_named(kept["type"]), "kind": ColumnKind(kept["kind"])})


def type_named(text: str) -> t.LogicalType:
    """A type by its text; that it is a time attribute is no part of SQL's syntax."""
    plain, star, mark = text.partition(" *")
    kind = parse_type(plain)
    if not star:
        return kind
    if isinstance(kind, t.LocalZonedTimestampType):
        return t.LocalZonedTimestampType(
            nullable=kind.nullable, precision=kind.precision, attribute=mark.rstrip("*")
        )
    assert isinstance(kind, t.TimestampType)
    return t.TimestampType(nullable=kind.nullable, precision=kind.precision, rowtime=True)


def _function(function: CatalogFunction) -> Json:
    return {
        "name": function.name,
        "path": None if function.path is None else asdict(function.path),
        "implementation": function.implementation,
        "language": function.language,
        "temporary": function.temporary,
    }


def _restored_function(kept: Json) -> CatalogFunction:
    path = None if kept["path"] is None else ObjectPath(**kept["path"])
    return CatalogFunction(**{**kept, "path": path})
