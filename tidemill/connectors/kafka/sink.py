"""Writes a topic.

1. *stage*: tasks keep their messages as files in the staging directory.
2. *publish*: the driver sends the messages of all sinks of the job on this cluster: with exactly-once in one
   transaction, which also records the epoch (see ``transactions``), else with an idempotent producer.
3. The staged files go away after that.

A cluster that is down is tried again for a minute; then the job fails, and sends the same files when it is
started again.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, repeat
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemill.catalog.table import ColumnKind
from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.connectors.api import GroupedSink, SinkRequest
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.kafka import properties
from tidemill.connectors.kafka.fields import KeyAndValue
from tidemill.connectors.kafka.options import EXACTLY_ONCE, topics
from tidemill.connectors.kafka.sending import Outbox, Plain, Record
from tidemill.connectors.kafka.staging import DELETES, UPSERTS, KafkaStager, MessageEncoder
from tidemill.connectors.kafka.transactions import Transactions
from tidemill.connectors.metadata import key_of
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import ConnectorError
from tidemill.files.storage import Storage
from tidemill.types.logical import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSink(GroupedSink):
    """``directory``: its own below ``staging``; ``keys`` as of KafkaStager; ``partitioner``: default, fixed
    or round-robin; ``ordered`` as in SinkRequest; ``kind``: what sinks share that are sent together."""

    topic: str
    encoder: MessageEncoder
    keys: tuple[str, ...]
    partitioner: str
    ordered: bool
    staging: Storage
    directory: str
    outbox: Outbox
    kind: Hashable

    @property
    def group(self) -> Hashable:
        """Sinks of one job on one cluster commit together."""
        return self.kind

    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        return map_batches(frame, self.stager(epoch), "token STRING")

    def stager(self, epoch: int) -> KafkaStager:
        return KafkaStager(
            storage=self.staging, directory=self._staged(epoch), encoder=self.encoder, keys=self.keys
        )

    def publish(self, epoch: int, tokens: list[str]) -> None:
        self.publish_group(epoch, [(self, tokens)])

    def publish_group(self, epoch: int, parts: Sequence[tuple[KafkaSink, list[str]]]) -> None:
        """ConnectorError where the cluster refuses messages or cannot be reached; CommitUnknownError where
        nobody can tell whether it has them."""
        shares = [(sink, _files(tokens)) for sink, tokens in parts]
        if any(chain.from_iterable(files for _, files in shares)):
            topics = [sink.topic for sink, _ in parts]
            self.outbox.send(
                epoch, topics, lambda: chain.from_iterable(s.records(epoch, f) for s, f in shares)
            )
        for sink, _ in parts:
            sink.staging.remove_directory(sink._staged(epoch))

    def records(self, epoch: int, tasks: list[list[tuple[str, str]]]) -> Iterator[Record]:
        """The staged messages in the order of sending: unless tasks are in order, deletes come first."""
        files = [(number, what, name) for number, task in enumerate(tasks) for what, name in task]
        if not self.ordered:
            files = [f for f in files if f[1] == DELETES] + [f for f in files if f[1] == UPSERTS]
        turns = count()
        for number, _, name in files:
            chosen = {"fixed": repeat(number), "round-robin": turns}.get(self.partitioner, repeat(None))
            for batch in self._read(epoch, name):
                keys, values, millis, headers = (_listed(column) for column in batch.columns)
                topics = repeat(self.topic, batch.num_rows)
                yield from zip(topics, keys, values, chosen, millis, headers, strict=False)

    def _read(self, epoch: int, name: str) -> Iterator[pa.RecordBatch]:
        try:
            with (
                self.staging.open(f"{self._staged(epoch)}/{name}") as file,
                pa.ipc.open_stream(file) as batches,
            ):
                yield from batches
        except OSError as e:
            raise ConnectorError(
                f"Rows of epoch {epoch} for topic '{self.topic}' are staged no more: {e}",
                hint="Set 'sink.staging-path' to a directory that outlives the machine's restarts.",
            ) from None

    def discard(self, epoch: int) -> None:
        """Of the epoch before it, which may yet be published again, nothing goes."""
        self.outbox.recover(epoch)
        for name in self.staging.directories(self.directory):
            if name.isdecimal() and int(name) >= epoch:
                self.staging.remove_directory(f"{self.directory}/{name}")

    def finish(self) -> None:
        self.outbox.close()
        self.staging.remove_directory(self.directory)
        self.staging.prune(self.directory.rpartition("/")[0])

    def _staged(self, epoch: int) -> str:
        return f"{self.directory}/{epoch}"


def kafka_sink(
    request: SinkRequest,
    options: OptionValues,
    parts: KeyAndValue,
    *,
    partitioner: str,
    upserts: bool,
    staging: str,
) -> KafkaSink:
    """ConnectorError where the topic is not there and is not made."""
    given = properties.given(request.options)
    (topic,) = topics(options)
    exactly = options["sink.delivery-guarantee"].lower() == EXACTLY_ONCE
    name = f"{request.job_id}-{request.ordinal}"
    storage, directory = Storage(staging), f"{request.job_id}/{request.ordinal}"
    outbox: Outbox = Plain(given=given)
    if exactly:
        outbox = Transactions(
            given=given,
            name=f"{options['sink.transactional-id-prefix']}-{name}",
            topic=topic,
            storage=storage,
            note=f"{directory}/recorded",
        )
    outbox.check(topic)
    changelog = not upserts and parts.kinds() != INSERT_ONLY and request.kinds != INSERT_ONLY
    return KafkaSink(
        topic=topic,
        encoder=_encoder(request, parts, changelog=changelog),
        keys=request.table.primary_key if upserts else (),
        # As in Flink: with keys it is Kafka's own way that takes turns, for messages without one.
        partitioner="default" if partitioner == "round-robin" and parts.key else partitioner,
        ordered=request.ordered,
        staging=storage,
        directory=directory,
        outbox=outbox,
        kind=("kafka", exactly, *sorted(given.items()), options["sink.transactional-id-prefix"]),
    )


def _encoder(request: SinkRequest, parts: KeyAndValue, *, changelog: bool) -> MessageEncoder:
    columns = request.table.written_columns
    written = tuple(Field(c.name, c.type) for c in columns)
    zone, key = request.time_zone, parts.key
    return MessageEncoder(
        fields=written if len(written) == len(request.fields) else request.fields,
        value=parts.value.encoder(zone, changelog=changelog),
        key=None if key is None else key.encoder(zone, changelog=False),
        key_columns=tuple(f.name for f in parts.key_columns),
        key_names=() if key is None else tuple(f.name for f in key.fields),
        metadata={key_of(c): c.name for c in columns if c.kind is ColumnKind.METADATA},
    )


def _listed(column: pa.Array) -> Iterable[Any]:
    """Nothing is asked of each row where there is nothing."""
    return repeat(None) if column.null_count == len(column) else column.to_pylist()


def _files(tokens: list[str]) -> list[list[tuple[str, str]]]:
    """Per task what its files are, and their names."""
    return [[(what, name) for name, what, _ in json.loads(token)["files"]] for token in tokens]
