"""Databases and what is in them as JSON, and back: what a session's snapshot has, and a catalog's store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from tidemill.catalog.function import CatalogFunction
from tidemill.catalog.memory import Database
from tidemill.catalog.model import CatalogModel
from tidemill.catalog.table import (
    CatalogObject,
    CatalogTable,
    CatalogView,
    Column,
    ColumnKind,
    Distribution,
    ObjectPath,
    Partition,
    Upkeep,
    WatermarkSpec,
)
from tidemill.sql.types import parse_type
from tidemill.types import logical as t

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


def restored_database(kept: Json) -> Database:
    objects = map(restored_object, kept["objects"])
    functions = map(restored_function, kept["functions"])
    models = map(restored_model, kept.get("models", ()))
    return Database(
        name=kept["name"],
        comment=kept["comment"],
        properties=kept["properties"],
        tables={entry.path.name: entry for entry in objects},
        functions={function.name.lower(): function for function in functions},
        models={model.path.name: model for model in models},
    )


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


def restored_object(kept: Json) -> CatalogTable | CatalogView:
    fields: Json = {k: tuple(v) if isinstance(v, list) else v for k, v in kept.items() if k != "kind"}
    fields["path"] = ObjectPath(**kept["path"])
    if kept["kind"] == "view":
        fields["column_types"] = tuple(map(type_named, kept.get("column_types", ())))
        return CatalogView(**fields)
    fields["columns"] = tuple(map(_restored_column, kept["columns"]))
    if kept.get("distribution") is not None:
        found = kept["distribution"]
        fields["distribution"] = Distribution(**{**found, "columns": tuple(found["columns"])})
    if kept.get("upkeep") is not None:
        fields["upkeep"] = Upkeep(**kept["upkeep"])
    fields["partitions"] = tuple(map(_restored_partition, kept.get("partitions", ())))
    if kept["watermark"] is not None:
        fields["watermark"] = WatermarkSpec(**kept["watermark"])
    return CatalogTable(**fields)


def _restored_partition(kept: Json) -> Partition:
    return Partition(values=tuple(map(tuple, kept["values"])), options=tuple(map(tuple, kept["options"])))


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


def restored_model(kept: Json) -> CatalogModel:
    columns = {key: tuple(map(_restored_column, kept[key])) for key in ("inputs", "outputs")}
    return CatalogModel(**{**kept, **columns, "path": ObjectPath(**kept["path"])})


def restored_function(kept: Json) -> CatalogFunction:
    path = None if kept["path"] is None else ObjectPath(**kept["path"])
    return CatalogFunction(**{**kept, "path": path})
