"""What a scan asks of its source, and how what comes becomes the table's columns.

Physical columns come in their declared types. Metadata comes in its key's type and is cast, as CAST does. The
entries of maps come in any order, and are put into the one that makes equal maps one value.
"""

from __future__ import annotations

from tidemill.catalog.table import CatalogTable
from tidemill.connectors.api import SourceRequest
from tidemill.connectors.filters import ColumnFilter
from tidemill.connectors.metadata import key_of, metadata_columns
from tidemill.connectors.registry import metadata_types
from tidemill.functions.casts import cast_sql
from tidemill.functions.values import in_order
from tidemill.runtime.compile.context import CompileContext
from tidemill.types.logical import Field
from tidemill.types.physical import quote


def source_request(
    table: CatalogTable,
    columns: tuple[str, ...],
    options: dict[str, str],
    fields: tuple[Field, ...],
    context: CompileContext,
    sequenced: bool,
    filters: tuple[ColumnFilter, ...],
) -> SourceRequest:
    """The request for ``columns`` of ``table`` (read under their names in the table), of whose rows those are
    wanted for which ``filters`` hold."""
    metadata = {c.name: key_of(c) for c in metadata_columns(table) if c.name in columns}
    types = metadata_types(options) if metadata else {}
    given = {name: types[key] for name, key in metadata.items()}
    return SourceRequest(
        table=table,
        options=options,
        fields=tuple(Field(c, given.get(c, f.type)) for c, f in zip(columns, fields, strict=True)),
        metadata=metadata,
        sequence=sequenced,
        parallelism=context.parallelism,
        time_zone=context.zone,
        streaming=context.streaming,
        filters=filters,
    )


def declared(request: SourceRequest, names: tuple[str, ...]) -> tuple[str, ...]:
    """Spark SQL texts of the table's columns over the request's fields, which go by ``names``."""
    types = {c.name: c.type for c in metadata_columns(request.table)}
    zone = request.time_zone
    return tuple(
        cast_sql(in_order(quote(name), f.type), f.type, types.get(f.name, f.type), safe=False, zone=zone)
        for name, f in zip(names, request.fields, strict=True)
    )
