"""Databases and what is in them as JSON, and back: what a session's snapshot has, and a catalog's store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from tidemill.catalog.memory import Database
from tidemill.catalog.objects import CatalogFunction, CatalogModel
from tidemill.catalog.table import CatalogObject, CatalogTable, CatalogView, Column
from tidemill.session.catalogs.reading import read

Json = dict[str, Any]


def database_document(database: Database) -> Json:
    return {
        "name": database.name,
        "comment": database.comment,
        "properties": database.properties,
        "objects": object_documents(database.tables.values()),
        "functions": [function_document(f) for f in database.functions.values() if f.declared is None],
        "models": [model_document(m) for m in database.models.values()],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseDocument:
    """What ``database_document`` writes."""

    name: str
    comment: str
    properties: dict[str, str]
    objects: tuple[CatalogTable | CatalogView, ...]
    functions: tuple[CatalogFunction, ...]
    models: tuple[CatalogModel, ...] = ()

    def restored(self) -> Database:
        return Database(
            name=self.name,
            comment=self.comment,
            properties=self.properties,
            tables={entry.path.name: entry for entry in self.objects},
            functions={function.name.lower(): function for function in self.functions},
            models={model.path.name: model for model in self.models},
        )


def restored_databases(kept: object, place: str) -> list[Database]:
    """Of a list of ``database_document``; StateError, which names the place, where it is none."""
    return [document.restored() for document in read(tuple[DatabaseDocument, ...], kept, place)]


def object_documents(entries: Iterable[CatalogObject]) -> list[Json]:
    return [_object(e) for e in entries if isinstance(e, CatalogTable | CatalogView)]


def _object(entry: CatalogTable | CatalogView) -> Json:
    kept = asdict(entry) | {"kind": "table" if isinstance(entry, CatalogTable) else "view"}
    if isinstance(entry, CatalogTable):
        kept["columns"] = list(map(_column_document, entry.columns))
    else:
        kept["column_types"] = list(map(str, entry.column_types))
    return kept


def _column_document(column: Column) -> Json:
    return asdict(column) | {"type": str(column.type), "kind": column.kind.value}


def function_document(function: CatalogFunction) -> Json:
    return {
        "name": function.name,
        "path": None if function.path is None else asdict(function.path),
        "implementation": function.implementation,
        "language": function.language,
        "temporary": function.temporary,
    }


def model_document(model: CatalogModel) -> Json:
    columns = {"inputs": model.inputs, "outputs": model.outputs}
    return asdict(model) | {key: list(map(_column_document, found)) for key, found in columns.items()}
