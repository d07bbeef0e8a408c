"""The ``spark`` connector: whatever Spark can read or write, by its own format name.

Every option but connector, format and spool.path goes to Spark as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tidemill.catalog.table import CatalogTable
from tidemill.connectors.api import Connector, ConnectorOption, SinkRequest, Source, SourceRequest
from tidemill.connectors.filesystem.connector import CONNECTOR as FILES
from tidemill.connectors.registry import PLANNER_OPTIONS
from tidemill.connectors.spark.reading import SparkBatchSource, SparkFormat, SparkStreamSource
from tidemill.connectors.spark.writing import SparkSink
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.files.private import own_directory
from tidemill.files.systems import is_local, local_path
from tidemill.types import logical as t
from tidemill.types.logical import Field

_OPTIONS = (
    ConnectorOption(key="format", doc="Spark's name of the source or sink."),
    ConnectorOption(key="table", doc="Instead of a format: a table of Spark's own catalogs, by its name."),
    ConnectorOption(
        key="spool.path",
        doc="Directory for micro-batches between Spark and Tidemill; default: one of this user's own.",
    ),
)
_OWN = {*PLANNER_OPTIONS, "format", "table", "spool.path"}
_PLACES = ("path", "checkpointlocation", "location", "spool.path")
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")
_JSON_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_PATTERN = re.compile(r"[*?\[{\\]")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_CARRIED = (t.TimeType, t.MapType, t.MultisetType)


class SparkConnector(Connector):
    identifier = "spark"
    options = _OPTIONS
    allows_unknown_options = True
    is_source = True
    is_sink = True

    def validate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        if ("format" in options) == ("table" in options):
            raise ValidationError(
                "The connector 'spark' needs either the option 'format' or the option 'table'."
            )
        for column in table.physical_columns:
            if isinstance(column.type, _CARRIED):
                raise ValidationError(
                    f"Column '{column.name}': the connector 'spark' does not support the type {column.type}."
                )

    def shared_paths(self, options: Mapping[str, str], *, role: str, streaming: bool) -> Mapping[str, str]:
        return {"spool.path": _spool(options)} if streaming or role == "sink" else {}

    def named_paths(self, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """What looks like a place: Spark's formats call theirs as they like, and ``table`` may be a file's
        name. Of a pattern, as Hadoop knows them, the folder that it begins in."""
        if "table" in options:
            files = _QUOTED.findall(options["table"])
            yield from (("table", _begun(file)) for file in files if "/" in file)
        for key, value in _texts(options):
            if key.lower() in _PLACES or value.startswith(("/", "file:")) or _URI.match(value):
                yield key, _begun(value)

    def source(self, request: SourceRequest) -> Source:
        given = SparkFormat(
            name=request.options.get("format", ""),
            table=request.options.get("table", ""),
            options=_passed(request.options),
            columns=tuple(Field(c.name, c.type) for c in request.table.physical_columns),
            fields=request.fields,
        )
        if not request.streaming:
            return SparkBatchSource(format=given, sequence=request.sequence)

        def spool(path: str) -> Source:
            files = {"connector": "filesystem", "path": path, "format": "parquet"}
            return FILES.source(
                replace(
                    request, table=_plain(request.table), options=files | {"source.monitor-interval": "1 s"}
                )
            )

        return SparkStreamSource(format=given, spool=spool, root=_spool(request.options))

    def sink(self, request: SinkRequest) -> SparkSink:
        place = Path(_spool(request.options)) / request.job_id / str(request.ordinal)
        files = {"connector": "filesystem", "path": str(place), "format": "parquet"}
        columns = tuple(Field(c.name, c.type) for c in request.table.physical_columns)
        return SparkSink(
            format=request.options.get("format", ""),
            table=request.options.get("table", ""),
            options=_passed(request.options),
            fields=columns if len(columns) == len(request.fields) else request.fields,
            partitioned_by=request.table.partitioned_by,
            mode="overwrite" if request.overwrite else "append",
            place=place,
            spool=FILES.sink(replace(request, table=_plain(request.table), options=files, overwrite=False)),
        )


def _texts(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each option's value; of `paths`, a list as JSON, those in it. Spark's names have no capitals."""
    for key, value in options.items():
        yield key, value
        if key.lower() == "paths":
            yield from ((key, path) for path in _JSON_TEXT.findall(value))


def _begun(location: str) -> str:
    """A place up to what stands for several."""
    known = _PATTERN.split(location, maxsplit=1)
    return known[0] if len(known) == 1 else known[0].rpartition("/")[0] or "/"


def _spool(options: Mapping[str, str]) -> str:
    """NotSupportedError for a URI: micro-batches are renamed into place by the driver."""
    given = options.get("spool.path") or own_directory("spool")
    if not is_local(given):
        raise NotSupportedError(
            f"'spool.path' is '{given}': the spool of the connector 'spark' must be on a local or mounted "
            "file system."
        )
    return local_path(given)


def _plain(table: CatalogTable) -> CatalogTable:
    """The spool has no partition directories."""
    return replace(table, partitioned_by=())


def _passed(options: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in options.items() if key not in _OWN}


CONNECTOR = SparkConnector()
