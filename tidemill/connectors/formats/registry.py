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
from tidemill.connectors.option_values import spelling_hint
from tidemill.errors import NotSupportedError, ValidationError

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

_NOT_THERE_YET = ("avro", "avro-confluent", "debezium-avro-confluent", "protobuf")


def find_format(identifier: str) -> Format:
    """NotSupportedError for a format of Flink's that is not there, ValidationError for other names; both list
    the formats there are."""
    found = FORMATS.get(identifier)
    if found is None:
        known = identifier in _NOT_THERE_YET
        error = NotSupportedError if known else ValidationError
        raise error(
            f"Could not find any format factory for identifier '{identifier}'.",
            expected=tuple(sorted(FORMATS)),
            hint=f"Tidemill has no format '{identifier}' yet."
            if known
            else spelling_hint([identifier], FORMATS),
        )
    return found
