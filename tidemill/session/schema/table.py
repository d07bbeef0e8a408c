"""A whole table from a CREATE TABLE statement, in the order in which its parts depend on each other.

1. physical and metadata columns (merged with LIKE's source), 2. the primary key (makes columns NOT
NULL), 3. types of computed columns, 4. partitions, 5. the watermark.
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.catalog.table import CatalogTable, Column, ObjectPath
from tidemill.session.schema import like
from tidemill.session.schema.columns import (
    TypeOf,
    check_distribution,
    check_partitions,
    check_unique,
    declared,
    typed,
)
from tidemill.session.schema.primary_key import only_key, with_key
from tidemill.session.schema.watermark import with_watermark
from tidemill.sql import statements as s


def plain_table(statement: s.CreateTable, path: ObjectPath, columns: tuple[Column, ...] = ()) -> CatalogTable:
    """Step 1 without LIKE; ``columns`` come from a query (CTAS) and go behind the declared ones."""
    return CatalogTable(
        path=path,
        columns=(*(declared(d) for d in statement.columns), *columns),
        options=dict(statement.options),
        partitioned_by=statement.partitioned_by,
        distribution=statement.distribution,
        comment=statement.comment,
        temporary=statement.temporary,
    )


def like_table(statement: s.CreateTable, path: ObjectPath, source: CatalogTable) -> CatalogTable:
    """Step 1 with LIKE."""
    assert statement.like is not None
    return replace(like.merged(source, statement, statement.like), path=path)


def completed(statement: s.CreateTable, table: CatalogTable, type_of: TypeOf) -> CatalogTable:
    """Steps 2 to 5. A key on columns that LIKE or a query brought does not make them NOT NULL: they must be
    so."""
    check_unique(statement.columns)
    own = statement.like is None and statement.query is None
    keyed = with_key(table, only_key(statement.constraints), make_not_null=own)
    full = typed(keyed, type_of)
    check_partitions(full, statement.position)
    check_distribution(full, statement.position)
    return with_watermark(full, statement.watermarks, type_of)
