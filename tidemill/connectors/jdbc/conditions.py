"""Which conditions over a table its database looks at, so that fewer rows come.

A condition goes there only where it cannot leave out a row for which ours holds: by the column's type in the
database, not the declared one. Texts are asked for equality alone (what is less a collation decides; one that
takes more for equal only gives more rows). SQLite's columns hold what they like: there whole numbers are
asked for, and texts where no blob may be read as one.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import inspect
from sqlalchemy import types as s
from sqlalchemy.exc import NoSuchTableError

from tidemill.connectors.filters import AllOf, AnyOf, ColumnFilter, Comparison, Nullness
from tidemill.connectors.jdbc.failures import DATABASE_ERRORS, failure
from tidemill.connectors.jdbc.target import quote
from tidemill.connectors.jdbc.urls import Database

_ORDERED = frozenset({"=", "<>", "<", "<=", ">", ">="})
_EQUAL = frozenset({"="})
_ASKED: Mapping[str, tuple[tuple[type[Any], type[Any], frozenset[str]], ...]] = {
    "postgresql": (
        (bool, s.Boolean, _ORDERED),
        (int, s.Integer, _ORDERED),
        (dt.date, s.Date, _ORDERED),
        (str, s.String, _EQUAL),
    ),
    "sqlite": ((int, s.Integer, _ORDERED), (str, s.String, _EQUAL)),
}
"""By dialect: a value's type, the column's, and how they may be compared."""
_NAMES = re.compile(r"(?<!\\):(v\d+)")
_WHOLE = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Where:
    """A condition with names for its values; '' asks for nothing."""

    text: str = ""
    values: Mapping[str, object] = field(default_factory=dict)


EVERYTHING = Where()


def where(filters: tuple[ColumnFilter, ...], database: Database, table: str) -> Where:
    """What of ``filters`` the database is asked; ConnectorError where it does not tell its types."""
    if not filters:
        return EVERYTHING
    asking = _Asking(database.dialect, column_types(database, table))
    text = asking.all_of(filters)
    return Where(text, {name: asking.values[name] for name in _NAMES.findall(text)})


def column_types(database: Database, table: str) -> dict[str, Any]:
    """Of a table's columns in the database; none where there is no such table, as the scan says."""
    schema, _, name = table.rpartition(".")
    try:
        columns = inspect(database.engine).get_columns(name, schema or None)
    except NoSuchTableError:
        return {}
    except DATABASE_ERRORS as e:
        raise failure(e, database, table) from None
    return {c["name"]: c["type"] for c in columns}


def exactly(
    filters: tuple[ColumnFilter, ...], dialect: str, types: Mapping[str, Any], collation: str
) -> Where | None:
    """What the database is asked so that only rows for which ``filters`` hold are left, of columns whose
    values are ours; None where it cannot be asked so. ``collation``: the one that compares texts by bytes."""
    asking = _Exactly(dialect, types, collation=collation)
    text = asking.all_of(filters)
    return Where(text, asking.values) if text or not filters else None


@dataclass(slots=True)
class _Asking:
    """``types``: of the table's columns in the database; ``collation``: of texts that are compared."""

    dialect: str
    types: Mapping[str, Any]
    collation: str = ""
    values: dict[str, object] = field(default_factory=dict)

    def all_of(self, parts: tuple[ColumnFilter, ...]) -> str:
        return " AND ".join(filter(None, map(self._text, parts)))

    def _text(self, condition: ColumnFilter) -> str:
        match condition:
            case AllOf(parts):
                found = self.all_of(parts)
                return f"({found})" if found else ""
            case AnyOf(parts):
                texts = list(map(self._text, parts))
                return f"({' OR '.join(texts)})" if all(texts) else ""
            case Nullness(column, is_null):
                # What is there and reads as NULL would be missed.
                return "" if is_null or column not in self.types else f"{_escaped(column)} IS NOT NULL"
            case Comparison(column, operator, value):
                return self._comparison(column, operator, value)

    def _comparison(self, column: str, operator: str, value: object) -> str:
        own = self.types.get(column)
        for kind, stored, operators in _ASKED[self.dialect]:
            if type(value) is kind and isinstance(own, stored) and operator in operators and _sends(value):
                return self._compared(column, operator, value)
        return ""

    def _compared(self, column: str, operator: str, value: object) -> str:
        name = f"v{len(self.values)}"
        self.values[name] = value
        collation = f" {self.collation}" if self.collation and isinstance(value, str) else ""
        text = f"{_escaped(column)}{collation} {operator} :{name}"
        if self.dialect == "sqlite" and isinstance(value, str):
            return f"({text} OR typeof({_escaped(column)}) = 'blob')"
        return text


@dataclass(slots=True)
class _Exactly(_Asking):
    """A condition that cannot be asked for leaves none of what it is part of."""

    def all_of(self, parts: tuple[ColumnFilter, ...]) -> str:
        texts = list(map(self._text, parts))
        return " AND ".join(texts) if all(texts) else ""

    def _text(self, condition: ColumnFilter) -> str:
        if isinstance(condition, Nullness):
            return f"{_escaped(condition.column)} IS {'' if condition.is_null else 'NOT '}NULL"
        return super(_Exactly, self)._text(condition)


def _escaped(column: str) -> str:
    return quote(column).replace(":", "\\:")


def _sends(value: object) -> bool:
    """Whether a driver takes the value."""
    if isinstance(value, str):
        return "\0" not in value
    return not isinstance(value, int) or value in _WHOLE
