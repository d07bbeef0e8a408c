"""The formats by identifier."""

from __future__ import annotations

from tidemill.connectors.formats.api import Format
from tidemill.connectors.formats.cdc.canal import CanalFormat
from tidemill.connectors.formats.cdc.debezium import DebeziumFormat
from tidemill.connectors.formats.cdc.maxwell import MaxwellFormat
from tidemill.connectors.formats.cdc.ogg import OggFormat
from tidemill.connectors.formats.columnar.orc import OrcFormat
from tidemill.connectors.formats.columnar.parquet import ParquetFormat
from tidemill.connectors.formats.csv.format import CsvFormat
from tidemill.connectors.formats.json.format import JsonFormat
from tidemill.connectors.formats.raw import RawFormat
from tidemill.errors import ValidationError

_ALL: tuple[Format, ...] = (
    CsvFormat(),
    JsonFormat(),
    RawFormat(),
    ParquetFormat(),
    OrcFormat(),
    DebeziumFormat(),
    CanalFormat(),
    MaxwellFormat(),
    OggFormat(),
)
FORMATS: dict[str, Format] = {f.identifier: f for f in _ALL}


def find_format(identifier: str) -> Format:
    """ValidationError, listing the formats there are, when there is none of that name."""
    found = FORMATS.get(identifier)
    if found is None:
        raise ValidationError(
            f"Could not find any format factory for identifier '{identifier}'.",
            expected=tuple(sorted(FORMATS)),
        )
    return found
