"""The connectors ``kafka`` and ``upsert-kafka``: topics of Kafka as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import UPSERT, RowKind
from tidemill.connectors.api import Connector, ConnectorOption, SinkRequest, SourceRequest
from tidemill.connectors.kafka import properties
from tidemill.connectors.kafka.cluster import KafkaCluster
from tidemill.connectors.kafka.consuming import RangeReader
from tidemill.connectors.kafka.fields import KeyAndValue, names_file
from tidemill.connectors.kafka.options import (
    EARLIEST,
    EXACTLY_ONCE,
    GROUP_OFFSETS,
    KAFKA_OPTIONS,
    UNBOUNDED,
    UPSERT_OPTIONS,
    Bound,
    bound,
    check_sink,
    check_topics,
    partitioner,
    topics,
)
from tidemill.connectors.kafka.reading import KafkaReader
from tidemill.connectors.kafka.rows import METADATA, WRITABLE
from tidemill.connectors.kafka.sink import KafkaSink, kafka_sink
from tidemill.connectors.kafka.source import KafkaSource
from tidemill.connectors.option_values import OptionValues
from tidemill.connectors.registry import check_unknown
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.files.private import own_directory
from tidemill.files.storage import Storage
from tidemill.types.logical import LogicalType

_RESETS = ("earliest", "latest")


class KafkaConnector(Connector):
    """``upserts``: the last message of a key is its row, one without a value deletes it."""

    allows_unknown_options = True  # those of the formats; validate() looks at the rest
    is_source = True
    is_sink = True

    def __init__(self, identifier: str, options: tuple[ConnectorOption, ...], *, upserts: bool) -> None:
        self.identifier = identifier
        self.options = options
        self.upserts = upserts

    def validate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        given = OptionValues(self.options, options)
        parts = self._parts(table, options)
        check_unknown(self.identifier, (*self.options, *parts.declared()), options)
        given.check()
        check_topics(given)
        parts.check()
        properties.admin(properties.given(options))
        bound(given, "bounded")
        if not self.upserts:
            bound(given, "startup")
            partitioner(given)

    def metadata(self, options: Mapping[str, str]) -> Mapping[str, LogicalType]:
        return {**KeyAndValue.value_metadata(options), **METADATA}

    def writable_metadata(self, options: Mapping[str, str]) -> Mapping[str, LogicalType]:
        return {key: METADATA[key] for key in WRITABLE}

    def source_kinds(self, table: CatalogTable, options: Mapping[str, str]) -> frozenset[RowKind]:
        return UPSERT if self.upserts else self._parts(table, options).kinds()

    def sink_kinds(
        self, table: CatalogTable, options: Mapping[str, str], wanted: frozenset[RowKind]
    ) -> frozenset[RowKind]:
        return self.source_kinds(table, options)

    def source(self, request: SourceRequest) -> KafkaSource:
        options, parts = (
            OptionValues(self.options, request.options),
            self._parts(request.table, request.options),
        )
        end = bound(options, "bounded")
        if not request.streaming and end.mode == UNBOUNDED:
            raise ValidationError(
                f"Querying an unbounded table '{request.table.path}' in batch mode is not allowed."
                " The table source is unbounded.",
                hint="Set 'scan.bounded.mode' = 'latest-offset', or execution.runtime-mode to streaming.",
            )
        given = properties.given(request.options)
        start = Bound(mode=EARLIEST) if self.upserts else bound(options, "startup")
        group = given.get("group.id", "")
        if not group and GROUP_OFFSETS in (start.mode, end.mode):
            raise ValidationError(
                f"Table '{request.table.path}' begins or ends at the offsets of a consumer group, but"
                " 'properties.group.id' is not set.",
                hint="Set it, or 'scan.startup.mode' = 'earliest-offset'.",
            )
        reset = given.get("auto.offset.reset", "").lower()
        interval = None if self.upserts else options["scan.topic-partition-discovery.interval"]
        return KafkaSource(
            cluster=KafkaCluster(given=given),
            reader=KafkaReader(
                messages=RangeReader(given=given),
                rows=parts.rows(request, upserts=self.upserts),
            ),
            names=topics(options),
            pattern=options["topic-pattern"],
            group=group,
            startup=start,
            bounded=end,
            reset=reset if reset in _RESETS else "",
            interval=300.0 if interval is None else interval.seconds,
            parallelism=options["scan.parallelism"] or max(request.parallelism, 1),
            timed=request.table.watermark is not None,
        )

    def sink(self, request: SinkRequest) -> KafkaSink:
        if request.overwrite:
            raise NotSupportedError(f"INSERT OVERWRITE into a table of '{self.identifier}'")
        options = OptionValues(self.options, request.options)
        check_sink(options, self.identifier)
        return kafka_sink(
            request,
            options,
            self._parts(request.table, request.options),
            partitioner="default" if self.upserts else partitioner(options),
            upserts=self.upserts,
            staging=_staging(options),
        )

    def has_splits(self) -> bool:
        """Partitions are ordered, each by itself."""
        return True

    def gives_arrow(self) -> bool:
        return True

    def shared_paths(self, options: Mapping[str, str], *, role: str, streaming: bool) -> Mapping[str, str]:
        """Where workers leave rows for the commit, which the driver sends."""
        return {"sink.staging-path": _staging(OptionValues(self.options, options))} if role == "sink" else {}

    def kept_places(self, options: Mapping[str, str]) -> tuple[str, ...]:
        values = OptionValues(self.options, options)
        exactly = values["sink.delivery-guarantee"].lower() == EXACTLY_ONCE
        return (Storage(_staging(values)).full_path(""),) if exactly else ()

    def named_paths(self, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Of the rows between epoch and commit; certificates and keys of the client; files of formats."""
        for key, value in options.items():
            if key == "sink.staging-path" or properties.names_file(key) or names_file(key):
                yield key, value

    def _parts(self, table: CatalogTable, options: Mapping[str, str]) -> KeyAndValue:
        return KeyAndValue.of(table, options, self.options, upserts=self.upserts)


def _staging(options: OptionValues) -> str:
    return options["sink.staging-path"] or own_directory("spool")


KAFKA = KafkaConnector("kafka", KAFKA_OPTIONS, upserts=False)
UPSERT_KAFKA = KafkaConnector("upsert-kafka", UPSERT_OPTIONS, upserts=True)
