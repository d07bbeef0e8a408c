"""JDBC's metadata queries: catalogs, schemas, tables, columns, keys, functions, types.

The results have JDBC's columns. Names are JDBC patterns with ``%``, ``_`` and ``\\`` as escape, or ``*`` and
``.*`` as Hive's clients send them; an empty pattern matches all names. The catalog's name is no pattern; by
default it is the session's current catalog. Each query is an operation of the session: it runs in its turn,
and clients fetch its result as usual.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from tidemill.gateway.api import ResultInfo
from tidemill.gateway.endpoints.hiveserver2 import status, types
from tidemill.gateway.endpoints.hiveserver2.caller import Caller
from tidemill.gateway.endpoints.hiveserver2.handles import NEWEST, OperationRef, operation_handle, session_of
from tidemill.gateway.endpoints.hiveserver2.statements import await_end
from tidemill.gateway.endpoints.hiveserver2.structs import call_structs
from tidemill.gateway.endpoints.hiveserver2.wire import Answer
from tidemill.gateway.service.catalog import SessionCatalog, TableInfo
from tidemill.gateway.service.operation import Control, Outcome
from tidemill.gateway.service.pages import Pages
from tidemill.session.statements import like
from tidemill.types.logical import BOOLEAN, INT, STRING, Field, LogicalType
from tidemill.types.physical import arrow_schema

Rows = Iterable[tuple[Any, ...]]
_MEMORY = 1 << 62
_TABLE_TYPES = {
    "TABLE": False,
    "MANAGED_TABLE": False,
    "EXTERNAL_TABLE": False,
    "VIEW": True,
    "VIRTUAL_VIEW": True,
}
_NULLABLE = {False: (0, "NO"), True: (1, "YES")}
_SEARCHABLE = 3
_UNKNOWN_RESULT = 1
"""JDBC's functionResultUnknown is 0, functionNoTable 1. No listed function returns a table."""


@dataclass(frozen=True, slots=True)
class MetadataQuery:
    """``kind``: the operation's type. ``answer`` returns rows with ``columns``."""

    method: str
    kind: int
    columns: tuple[Field, ...]
    answer: Callable[[SessionCatalog, Any], Rows]


def metadata_method(query: MetadataQuery) -> Callable[[Caller, Any], Answer]:
    return partial(_ask, query)


def _ask(query: MetadataQuery, caller: Caller, request: Any) -> Answer:
    session = session_of(request.sessionHandle)
    catalog = caller.gateway.catalog(session.session, user=caller.user)
    work = partial(_outcome, query, catalog, request)
    operation = caller.gateway.submit(session.session, work, user=caller.user)
    ref = OperationRef(operation, session.session, session.version)
    await_end(caller, ref)
    call_types = call_structs(query.method)
    assert call_types is not None
    return Answer(call_types[1](status.good(), operation_handle(ref, query.kind)))


def _outcome(query: MetadataQuery, catalog: SessionCatalog, request: Any, control: Control) -> Outcome:
    schema = arrow_schema(query.columns)
    rows = list(query.answer(catalog, request))
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    pages = Pages(schema=schema, folder="", memory=_MEMORY, ahead=_MEMORY)
    pages.put(pa.table(arrays, schema=schema))
    pages.finish()
    return Outcome(
        ResultInfo(fields=query.columns, is_query=False, result_kind="SUCCESS_WITH_CONTENT"), pages
    )


def _catalogs(catalog: SessionCatalog, request: Any) -> Rows:
    return ((name,) for name in catalog.catalogs())


def _schemas(catalog: SessionCatalog, request: Any) -> Rows:
    return (
        (database, name) for name, database in _databases(catalog, request.catalogName, request.schemaName)
    )


def _table_types(catalog: SessionCatalog, request: Any) -> Rows:
    return (("TABLE",), ("VIEW",))


def _tables(catalog: SessionCatalog, request: Any) -> Rows:
    is_view_values = {_TABLE_TYPES.get(name.upper()) for name in request.tableTypes or ("TABLE", "VIEW")}
    for table in _matching_tables(catalog, request):
        if table.is_view in is_view_values:
            path, kind = table.path, "VIEW" if table.is_view else "TABLE"
            yield path.catalog, path.database, path.name, kind, table.comment, None, None, None, None, None


def _columns(catalog: SessionCatalog, request: Any) -> Rows:
    name = _pattern(request.columnName)
    for table in _matching_tables(catalog, request):
        path = table.path
        for position, column in enumerate(catalog.columns(path), start=1):
            if name.fullmatch(column.name):
                type_columns = _described(column.type)
                nullable, is_nullable = _NULLABLE[column.type.nullable]
                names = path.catalog, path.database, path.name, column.name
                rest = None, None, None, type_columns[2], position, is_nullable, None, None, None, None, "NO"
                yield (*names, *type_columns, nullable, column.comment, *rest)


def _described(kind: LogicalType) -> tuple[int, str, int | None, None, int | None, int | None]:
    """JDBC's DATA_TYPE to NUM_PREC_RADIX."""
    wire = types.wire_type(kind, NEWEST)
    name = str(kind.with_nullable(True))
    return wire.jdbc, name, types.column_size(kind), None, types.decimal_digits(kind), wire.radix or None


def _primary_keys(catalog: SessionCatalog, request: Any) -> Rows:
    for table in _matching_tables(catalog, request):
        path = table.path
        for position, column in enumerate(catalog.primary_key(path), start=1):
            yield path.catalog, path.database, path.name, column, position, None


def _no_rows(catalog: SessionCatalog, request: Any) -> Rows:
    """There are no foreign keys."""
    return ()


def _functions(catalog: SessionCatalog, request: Any) -> Rows:
    name = _pattern(request.functionName)
    return (
        (None, None, function, "", _UNKNOWN_RESULT, function)
        for function in catalog.functions()
        if name.fullmatch(function) or name.fullmatch(function.upper())
    )


def _type_info(catalog: SessionCatalog, request: Any) -> Rows:
    for wire in types.ALL:
        text = wire.jdbc in (1, 12)
        quote = "'" if text else None
        literal = wire.precision, quote, quote, None
        marks = 1, text, _SEARCHABLE, wire.radix == 0, False, False
        yield (wire.name, wire.jdbc, *literal, *marks, wire.name, 0, 0, None, None, wire.radix or None)


def _databases(catalog: SessionCatalog, name: str | None, pattern: str | None) -> Iterator[tuple[str, str]]:
    """Catalog and name of each matching database; none if the catalog does not exist."""
    catalog_name = name or catalog.current[0]
    matches = _pattern(pattern)
    if catalog_name in catalog.catalogs():
        yield from ((catalog_name, d) for d in catalog.databases(catalog_name) if matches.fullmatch(d))


def _matching_tables(catalog: SessionCatalog, request: Any) -> Iterator[TableInfo]:
    name = _pattern(request.tableName)
    for catalog_name, database in _databases(catalog, request.catalogName, request.schemaName):
        yield from (
            table for table in catalog.tables(catalog_name, database) if name.fullmatch(table.path.name)
        )


def _pattern(text: str | None) -> re.Pattern[str]:
    parts = re.findall(r"\\.|\.\*|.", text or "%", re.DOTALL)
    return re.compile(like.expression(_MATCHES.get(p, re.escape(p[-1])) for p in parts), re.DOTALL)


_MATCHES = {"%": like.ANY, "*": like.ANY, ".*": like.ANY, "_": "."}


def _fields(text: str, *numbers: str, booleans: tuple[str, ...] = ()) -> tuple[Field, ...]:
    kinds = {**dict.fromkeys(numbers, INT), **dict.fromkeys(booleans, BOOLEAN)}
    return tuple(Field(name, kinds.get(name, STRING)) for name in text.split())


QUERIES = (
    MetadataQuery("GetTypeInfo", 1, _fields(
        "TYPE_NAME DATA_TYPE PRECISION LITERAL_PREFIX LITERAL_SUFFIX CREATE_PARAMS NULLABLE CASE_SENSITIVE "
        "SEARCHABLE UNSIGNED_ATTRIBUTE FIXED_PREC_SCALE AUTO_INCREMENT LOCAL_TYPE_NAME MINIMUM_SCALE "
        "MAXIMUM_SCALE SQL_DATA_TYPE SQL_DATETIME_SUB NUM_PREC_RADIX",
        "DATA_TYPE", "PRECISION", "NULLABLE", "SEARCHABLE", "MINIMUM_SCALE", "MAXIMUM_SCALE", "SQL_DATA_TYPE",
        "SQL_DATETIME_SUB", "NUM_PREC_RADIX",
        booleans=("CASE_SENSITIVE", "UNSIGNED_ATTRIBUTE", "FIXED_PREC_SCALE", "AUTO_INCREMENT"),
    ), _type_info),
    MetadataQuery("GetCatalogs", 2, _fields("TABLE_CAT"), _catalogs),
    MetadataQuery("GetSchemas", 3, _fields("TABLE_SCHEM TABLE_CATALOG"), _schemas),
    MetadataQuery("GetTables", 4, _fields(
        "TABLE_CAT TABLE_SCHEM TABLE_NAME TABLE_TYPE REMARKS TYPE_CAT TYPE_SCHEM TYPE_NAME "
        "SELF_REFERENCING_COL_NAME REF_GENERATION"
    ), _tables),
    MetadataQuery("GetTableTypes", 5, _fields("TABLE_TYPE"), _table_types),
    MetadataQuery("GetColumns", 6, _fields(
        "TABLE_CAT TABLE_SCHEM TABLE_NAME COLUMN_NAME DATA_TYPE TYPE_NAME COLUMN_SIZE BUFFER_LENGTH "
        "DECIMAL_DIGITS NUM_PREC_RADIX NULLABLE REMARKS COLUMN_DEF SQL_DATA_TYPE SQL_DATETIME_SUB "
        "CHAR_OCTET_LENGTH ORDINAL_POSITION IS_NULLABLE SCOPE_CATALOG SCOPE_SCHEMA SCOPE_TABLE "
        "SOURCE_DATA_TYPE IS_AUTO_INCREMENT",
        "DATA_TYPE", "COLUMN_SIZE", "BUFFER_LENGTH", "DECIMAL_DIGITS", "NUM_PREC_RADIX", "NULLABLE",
        "SQL_DATA_TYPE", "SQL_DATETIME_SUB", "CHAR_OCTET_LENGTH", "ORDINAL_POSITION", "SOURCE_DATA_TYPE",
    ), _columns),
    MetadataQuery("GetFunctions", 7, _fields(
        "FUNCTION_CAT FUNCTION_SCHEM FUNCTION_NAME REMARKS FUNCTION_TYPE SPECIFIC_NAME", "FUNCTION_TYPE"
    ), _functions),
    MetadataQuery("GetPrimaryKeys", 8, _fields(
        "TABLE_CAT TABLE_SCHEM TABLE_NAME COLUMN_NAME KEY_SEQ PK_NAME", "KEY_SEQ"
    ), _primary_keys),
    MetadataQuery("GetCrossReference", 8, _fields(
        "PKTABLE_CAT PKTABLE_SCHEM PKTABLE_NAME PKCOLUMN_NAME FKTABLE_CAT FKTABLE_SCHEM FKTABLE_NAME "
        "FKCOLUMN_NAME KEY_SEQ UPDATE_RULE DELETE_RULE FK_NAME PK_NAME DEFERRABILITY",
        "KEY_SEQ", "UPDATE_RULE", "DELETE_RULE", "DEFERRABILITY",
    ), _no_rows),
)  # fmt: skip
