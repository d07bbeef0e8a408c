"""The ``datagen`` connector: random or sequential rows, with Flink's options.

Unlike Flink's, its rows are deterministic: in (table name, column, row number), or in the option
``seed``. A sequence ends the source; so does number-of-rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.catalog.table import CatalogTable
from tidemill.connectors.api import Connector, ConnectorOption, SourceRequest
from tidemill.connectors.datagen.fields import FieldOptions, field_values
from tidemill.connectors.datagen.values import Values
from tidemill.connectors.generated import BLOCK_ROWS, GeneratedSource
from tidemill.connectors.option_values import OptionValues
from tidemill.connectors.registry import check_unknown
from tidemill.errors import ValidationError
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema, arrow_type

_OPTIONS = (
    ConnectorOption(key="rows-per-second", kind="int", default="10000", least=1, doc="Rate while streaming."),
    ConnectorOption(key="number-of-rows", kind="int", least=0, doc="Rows in all; unset, there is no end."),
    ConnectorOption(key="scan.parallelism", kind="int", least=1, doc="Number of reading tasks."),
    ConnectorOption(key="seed", kind="int", doc="Another seed, other rows."),
    ConnectorOption(
        key="fields.",
        kind="map",
        doc="fields.<name>.kind (random, sequence), .min, .max, .length, .var-len, .max-past, .null-rate,"
        " .start, .end; nested fields by .element, .key, .value or the field's name.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatagenGenerator:
    fields: tuple[Field, ...]
    values: tuple[Values, ...]
    seeds: tuple[int, ...]

    def block(self, number: int, time: int) -> pa.Table:
        columns = [
            values.make(
                np.random.Generator(np.random.Philox(key=[seed, number])),
                BLOCK_ROWS,
                number * BLOCK_ROWS,
                time,
            ).cast(arrow_type(field.type))
            for field, values, seed in zip(self.fields, self.values, self.seeds, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=arrow_schema(self.fields))


class DatagenConnector(Connector):
    identifier = "datagen"
    options = _OPTIONS
    allows_unknown_options = True  # looked at below, with the columns at hand
    is_source = True

    def validate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        read, _ = _read_fields(table, options)
        declared = [o for o in _OPTIONS if o.kind != "map"]
        declared += [ConnectorOption(key=key) for key in sorted(read.known)]
        check_unknown(self.identifier, declared, options, general=("connector",))

    def gives_arrow(self) -> bool:
        return True

    def source(self, request: SourceRequest) -> GeneratedSource:
        options = OptionValues(_OPTIONS, request.options)
        read, values = _read_fields(request.table, request.options)
        seed = options["seed"]
        base = zlib.crc32(str(request.table.path).encode()) if seed is None else seed & 0xFFFFFFFF
        counts = [*read.rows, *([options["number-of-rows"]] if options["number-of-rows"] is not None else [])]
        if not request.streaming and not counts:
            raise ValidationError(
                f"Querying an unbounded table '{request.table.path}' in batch mode is not allowed."
                " The table source is unbounded.",
                hint="Set 'number-of-rows', or execution.runtime-mode to streaming.",
            )
        return GeneratedSource(
            generator=DatagenGenerator(
                fields=request.fields,
                values=tuple(values[f.name] for f in request.fields),
                seeds=tuple((base << 32) | zlib.crc32(f.name.encode()) for f in request.fields),
            ),
            count=min(counts) if counts else None,
            rate=float(options["rows-per-second"]) if request.streaming else None,
            sequence=request.sequence,
            parallelism=options["scan.parallelism"] or request.parallelism,
        )


def _read_fields(table: CatalogTable, options: Mapping[str, str]) -> tuple[FieldOptions, dict[str, Values]]:
    read = FieldOptions(options)
    return read, {c.name: field_values(c.name, c.type, read) for c in table.physical_columns}


CONNECTOR = DatagenConnector()
