"""PRIMARY KEY: what may be declared, and what it does to its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemill.catalog.table import CatalogTable, ColumnKind
from tidemill.errors import ValidationError
from tidemill.session.schema.columns import find
from tidemill.sql.statements import Constraint


def only_key(constraints: Sequence[Constraint]) -> Constraint | None:
    """The one PRIMARY KEY among ``constraints``; refuses what Flink refuses."""
    for constraint in constraints:
        if constraint.kind.upper() != "PRIMARY KEY":
            raise ValidationError(
                f"{constraint.kind} constraint is not supported yet", position=constraint.position
            )
        if constraint.enforced is not False:
            raise ValidationError(
                "Flink doesn't support ENFORCED mode for PRIMARY KEY constraint. ENFORCED/NOT ENFORCED "
                "controls if the constraint checks are performed on the incoming/outgoing data. Flink does "
                "not own the data therefore the only supported mode is the NOT ENFORCED mode",
                position=constraint.position,
                hint="Write PRIMARY KEY (...) NOT ENFORCED.",
            )
    if len(constraints) > 1:
        raise ValidationError("Duplicate primary key definition", position=constraints[1].position)
    return constraints[0] if constraints else None


def with_key(table: CatalogTable, key: Constraint | None, *, make_not_null: bool = True) -> CatalogTable:
    """The table with ``key``; its columns become NOT NULL, or must be where ``make_not_null`` is off."""
    if key is None:
        return table
    name = key.name or "PK_" + "_".join(key.columns)
    _check_columns(table, key, name)
    columns = tuple(
        replace(c, type=c.type.with_nullable(False)) if c.name in key.columns else c for c in table.columns
    )
    if not make_not_null:
        _check_not_null(table, key, name)
    return replace(table, columns=columns, primary_key=key.columns, primary_key_name=name)


def _check_columns(table: CatalogTable, key: Constraint, name: str) -> None:
    for column in key.columns:
        key_column = find(table.columns, column)
        if key_column is None:
            raise ValidationError(
                f"Primary key column '{column}' is not defined in the schema at {key.position}",
                position=key.position,
                expected=tuple(c.name for c in table.physical_columns),
            )
        if key_column.kind is not ColumnKind.PHYSICAL:
            raise ValidationError(
                f"Could not create a PRIMARY KEY with column '{column}' at {key.position}.\n"
                "A PRIMARY KEY constraint must be declared on physical columns.",
                position=key.position,
            )
    twice = [c for c in dict.fromkeys(key.columns) if key.columns.count(c) > 1]
    if twice:
        raise ValidationError(
            f"Invalid primary key '{name}'. A primary key must not contain duplicate columns. "
            f"Found: [{', '.join(twice)}]",
            position=key.position,
        )


def _check_not_null(table: CatalogTable, key: Constraint, name: str) -> None:
    for column in key.columns:
        key_column = find(table.columns, column)
        if key_column is not None and key_column.type.nullable:
            raise ValidationError(
                f"Invalid primary key '{name}'. Column '{column}' is nullable.", position=key.position
            )
