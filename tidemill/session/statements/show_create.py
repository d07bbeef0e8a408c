"""SHOW CREATE: a statement that makes the object again, laid out as Flink lays it out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tidemill.catalog.manager import quoted
from tidemill.catalog.memory import InMemoryCatalog
from tidemill.catalog.objects import CatalogModel
from tidemill.catalog.table import CatalogTable, CatalogView, Column, ColumnKind, Upkeep
from tidemill.config.secrets import shown_value
from tidemill.session import binding
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, listing
from tidemill.session.schema import view_text
from tidemill.session.schema.expression_text import canonical
from tidemill.session.statements.describe import metadata_suffix
from tidemill.types.logical import MAX_LENGTH, STRING, Field, LogicalType

__all__ = ["catalog", "materialized_table", "model", "quoted", "table", "view"]


def table(entry: CatalogTable) -> TableResult:
    return _answer(f"CREATE {'TEMPORARY ' if entry.temporary else ''}TABLE {_defined(entry)}")


def materialized_table(entry: CatalogTable, upkeep: Upkeep, context: SessionContext) -> TableResult:
    query = CatalogView(
        path=entry.path,
        text=upkeep.text,
        default_catalog=upkeep.default_catalog,
        default_database=upkeep.default_database,
    )
    return _answer(
        f"CREATE MATERIALIZED TABLE {_defined(entry)}START_MODE = FROM_BEGINNING\n"
        f"FRESHNESS = {upkeep.freshness}\nREFRESH_MODE = CONTINUOUS\n"
        f"AS {view_text.display_text(context, query)}\n"
    )


def _defined(entry: CatalogTable) -> str:
    """A table's name and all that stands behind it."""
    lines = [_column(c) for c in entry.columns]
    if entry.watermark is not None:
        path = ".".join(map(name, entry.watermark.column.split(".")))
        lines.append(f"WATERMARK FOR {path} AS {canonical(entry.watermark.expression)}")
    if entry.primary_key:
        key = f"CONSTRAINT {name(entry.primary_key_name)} PRIMARY KEY ({_names(entry.primary_key)})"
        lines.append(f"{key} NOT ENFORCED")
    text = f"{quoted(entry.path)} (\n" + _indented(lines) + "\n)\n"
    text += _comment(entry.comment)
    if entry.distribution is not None:
        text += f"{entry.distribution.ddl}\n"
    if entry.partitioned_by:
        text += f"PARTITIONED BY ({_names(entry.partitioned_by)})\n"
    return text + _with(entry.options)


def view(entry: CatalogView, context: SessionContext) -> TableResult:
    names = entry.column_names or tuple(f.name for f in binding.view_fields(context, entry.path))
    word = "TEMPORARY VIEW" if entry.temporary else "VIEW"
    text = f"CREATE {word} {quoted(entry.path)} (\n" + _indented(map(name, names)) + "\n)\n"
    return _answer(text + _comment(entry.comment) + f"AS {view_text.display_text(context, entry)}\n")


def model(entry: CatalogModel) -> TableResult:
    text = f"CREATE {'TEMPORARY ' if entry.temporary else ''}MODEL {quoted(entry.path)}\n"
    for word, columns in (("INPUT", entry.inputs), ("OUTPUT", entry.outputs)):
        if columns:
            text += f"{word} ({', '.join(map(_column, columns))})\n"
    return _answer(text + _comment(entry.comment) + _with(entry.options))


def catalog(entry: InMemoryCatalog) -> TableResult:
    comment = _comment(entry.comment or "")
    return _answer(f"CREATE CATALOG {name(entry.name)}\n" + comment + _with(entry.options))


def name(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def _names(parts: Iterable[str]) -> str:
    return ", ".join(map(name, parts))


def _column(column: Column) -> str:
    comment = f" COMMENT {_string(column.comment)}" if column.comment else ""
    if column.kind is ColumnKind.COMPUTED:
        return f"{name(column.name)} AS {canonical(column.expression)}{comment}"
    text = f"{name(column.name)} {_type(column.type)}"
    if column.kind is ColumnKind.METADATA:
        text += " METADATA" + metadata_suffix(column)
    return text + comment


def _type(kind: LogicalType) -> str:
    """As the catalog serialises types: STRING, BYTES and TIMESTAMP_LTZ spelled out, inside others, too."""
    return _SHORT.sub(lambda found: found[0] if found[1] else _spelled(found), str(kind))


_SHORT = re.compile(r"(`(?:[^`]++|``)*+`)|\b(?:STRING|BYTES)\b|\bTIMESTAMP_LTZ(\(\d\))")
"""A quoted name, which is left as it is, or a type's short form."""
_LONG = {"STRING": f"VARCHAR({MAX_LENGTH})", "BYTES": f"VARBINARY({MAX_LENGTH})"}


def _spelled(found: re.Match[str]) -> str:
    return _LONG.get(found[0]) or f"TIMESTAMP{found[2]} WITH LOCAL TIME ZONE"


def _indented(lines: Iterable[str]) -> str:
    return ",\n".join(f"  {line}" for line in lines)


def _comment(comment: str) -> str:
    return f"COMMENT {_string(comment)}\n" if comment else ""


def _with(options: Mapping[str, str]) -> str:
    if not options:
        return ""
    entries = (f"{_string(k)} = {_string(shown_value(k, v))}" for k, v in sorted(options.items()))
    return "WITH (\n" + _indented(entries) + "\n)\n"


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _answer(text: str) -> TableResult:
    return listing((Field("result", STRING),), [(text,)])
