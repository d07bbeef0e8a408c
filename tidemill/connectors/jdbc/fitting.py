"""Whether a database's table can take what a sink will write; asked once, before a job starts."""

from __future__ import annotations

from typing import Any

from sqlalchemy import inspect
from sqlalchemy import types as s
from sqlalchemy.engine import Inspector
from sqlalchemy.exc import NoSuchTableError

from tidemill.connectors.jdbc.target import TargetTable
from tidemill.connectors.jdbc.urls import Database
from tidemill.errors import ConnectorError
from tidemill.types import logical as t

_NUMBERS = (s.Numeric, s.Float)
_KNOWN = (s.Integer, s.Numeric, s.Float, s.Boolean, s.Date, s.Time, s.DateTime, s.LargeBinary, s.ARRAY)

# What PostgreSQL can read from our text; any type goes into a text column. SQLite's columns take anything.
_TAKES: dict[type[t.LogicalType], tuple[type[Any], ...]] = {
    **dict.fromkeys((t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType), (s.Integer, *_NUMBERS)),
    **dict.fromkeys((t.DecimalType, t.FloatType, t.DoubleType), _NUMBERS),
    t.BooleanType: (s.Boolean,),
    t.DateType: (s.Date, s.DateTime),
    t.TimeType: (s.Time,),
    t.TimestampType: (s.DateTime,),
    t.LocalZonedTimestampType: (s.DateTime,),
    t.BinaryType: (s.LargeBinary,),
    t.VarBinaryType: (s.LargeBinary,),
    t.ArrayType: (s.ARRAY,),
}


def check(database: Database, target: TargetTable) -> None:
    """ConnectorError that lists what is expected and what was found; SQLAlchemyError where the database
    cannot be asked."""
    schema, _, name = target.name.rpartition(".")
    inspector = inspect(database.engine)
    try:
        found = {c["name"]: c["type"] for c in inspector.get_columns(name, schema or None)}
    except NoSuchTableError:
        found = {}
    if not found:
        raise ConnectorError(f"Table '{target.name}' does not exist in {database.redacted}.")
    problems = [*_lacking(target, found), *_unfit(target, found, database.dialect)]
    if problems:
        raise ConnectorError(
            f"Table '{target.name}' in {database.redacted} {'; '.join(problems)}.",
            hint=f"Expected: {_declared(target)}.\nFound: {', '.join(f'{n} {k}' for n, k in found.items())}.",
        )
    if target.keys:
        _check_unique(database, target, _unique(inspector, name, schema or None))


def _lacking(target: TargetTable, found: dict[str, Any]) -> list[str]:
    return [f"has no column '{c}'" for c in target.columns if c not in found]


def _unfit(target: TargetTable, found: dict[str, Any], dialect: str) -> list[str]:
    if dialect == "sqlite":
        return []
    return [
        f"has column '{f.name}' of type {found[f.name]}, which cannot hold {f.type}"
        for f in target.fields
        if f.name in found and not _fits(f.type, found[f.name])
    ]


def _fits(kind: t.LogicalType, column: Any) -> bool:
    if isinstance(column, s.String) or not isinstance(column, _KNOWN):
        return True  # text, or a type with a text form of its own: uuid, json, inet, enumerations
    takes = _TAKES.get(type(kind), ())
    if isinstance(kind, t.DecimalType) and kind.scale == 0:
        takes = (s.Integer, *takes)
    return isinstance(column, takes)


def _declared(target: TargetTable) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in target.fields)


def _unique(inspector: Inspector, name: str, schema: str | None) -> list[tuple[str, ...]]:
    """The column sets that an upsert can name, the primary key first."""
    primary = inspector.get_pk_constraint(name, schema)["constrained_columns"]
    unique = [c["column_names"] for c in inspector.get_unique_constraints(name, schema)]
    indexes = [
        [c for c in index["column_names"] if c is not None]
        for index in inspector.get_indexes(name, schema)
        if index["unique"] and None not in index["column_names"] and not _partial(index)
    ]
    return list(dict.fromkeys(tuple(c) for c in (primary, *unique, *indexes) if c))


def _partial(index: Any) -> bool:
    return any(key.endswith("_where") for key in index.get("dialect_options", {}))


def _check_unique(database: Database, target: TargetTable, unique: list[tuple[str, ...]]) -> None:
    if any(set(columns) == set(target.keys) for columns in unique):
        return
    found = ", ".join(f"({', '.join(columns)})" for columns in unique) or "none"
    raise ConnectorError(
        f"Table '{target.name}' in {database.redacted} has no primary key or unique constraint on "
        f"({', '.join(target.keys)}), which an upsert by the declared PRIMARY KEY needs.",
        hint=f"Found: {found}.",
    )
