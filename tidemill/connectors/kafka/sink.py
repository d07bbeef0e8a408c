"""Writes a topic.

1. *stage*: tasks keep their messages as files in the staging directory.
2. *publish*: the driver sends the messages of all sinks of the job on this cluster: with exactly-once in one
   transaction, which also records the epoch (see ``transactions``), else with an idempotent producer.
3. The staged files go away after that; with exactly-once only once the cluster shows the epoch (see
   ``kept``).

A cluster that is down is tried again for a minute; then the job fails, and sends the same files when it is
started again.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from tidemill.catalog.table import ColumnKind
from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.connectors.api import GroupedSink, SinkRequest
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.filesystem.writing import unwritten
from tidemill.connectors.kafka import properties
from tidemill.connectors.kafka.fields import KeyAndValue
from tidemill.connectors.kafka.inherited import reached, send_lost
from tidemill.connectors.kafka.kept import Kept, Share, records_of, topics_of
from tidemill.connectors.kafka.options import EXACTLY_ONCE, topics
from tidemill.connectors.kafka.sending import Outbox, Plain
from tidemill.connectors.kafka.staging import KafkaStager, MessageEncoder
from tidemill.connectors.kafka.transactions import Transactions
from tidemill.connectors.metadata import key_of
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import ConnectorError
from tidemill.files.storage import Storage
from tidemill.types.logical import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LAST_TRIES = 2
"""The first may find that the cluster has lost the epoch, and sends it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSink(GroupedSink):
    """``directory``: its own below ``staging``; ``keys`` as of KafkaStager; ``partitioner``: default, fixed
    or round-robin; ``ordered`` and ``former`` as in SinkRequest; ``kept``: None without transactions;
    ``elsewhere``: places beside ``staging`` where earlier sinks may have kept rows; ``kind``: what sinks
    share that are sent together; ``given``: how to reach the cluster."""

    topic: str
    encoder: MessageEncoder
    keys: tuple[str, ...]
    partitioner: str
    ordered: bool
    staging: Storage
    directory: str
    outbox: Outbox
    kept: Kept | None
    kind: Hashable
    given: properties.Properties
    former: tuple[str, ...]
    elsewhere: tuple[str, ...] = ()

    @property
    def group(self) -> Hashable:
        """Sinks of one job on one cluster commit together."""
        return self.kind

    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        return map_batches(frame, self.stager(epoch), "token STRING")

    def stager(self, epoch: int) -> KafkaStager:
        return KafkaStager(
            storage=self.staging, directory=f"{self.directory}/{epoch}", encoder=self.encoder, keys=self.keys
        )

    def publish(self, epoch: int, tokens: list[str]) -> None:
        self.publish_group(epoch, [(self, tokens)])

    def publish_group(self, epoch: int, parts: Sequence[tuple[KafkaSink, list[str]]]) -> None:
        """ConnectorError where the cluster refuses messages or cannot be reached; CommitUnknownError where
        nobody can tell whether it has them."""
        shares = [sink._share(epoch, tokens) for sink, tokens in parts]
        if not any(chain.from_iterable(share.tasks for share in shares)):
            for share in shares:
                share.remove()
        elif self.kept is None:
            self.outbox.send(epoch, topics_of(shares), partial(records_of, shares))
            for share in shares:
                share.remove()
        else:
            self.kept.add(epoch, shares)
            self._send_kept(self.kept)

    def _send_kept(self, kept: Kept) -> None:
        """Those of the kept epochs that the cluster does not have."""
        epochs = kept.epochs()
        *before, last = epochs
        topics = topics_of([share for shares in epochs.values() for share in shares])
        recorded = self.outbox.send(
            last,
            topics,
            partial(records_of, epochs[last]),
            {epoch: partial(records_of, epochs[epoch]) for epoch in before},
        )
        kept.seen(recorded)

    def _share(self, epoch: int, tokens: list[str]) -> Share:
        return Share(
            topic=self.topic,
            partitioner=self.partitioner,
            ordered=self.ordered,
            location=self.staging.location,
            directory=f"{self.directory}/{epoch}",
            tasks=_files(tokens),
        )

    def discard(self, epoch: int) -> None:
        """Of epochs before it, which may yet be sent again, nothing goes; those that the cluster has lost are
        sent now: rows that come later may be long in coming."""
        send_lost(self.given, self.staging, self.former, epoch)
        for place in self.elsewhere:
            own = self.directory.partition("/")[0]
            send_lost(self.given, reached(place), (*self.former, own), epoch)
        if self.kept is not None:
            self._make_folder()
        recorded = self.outbox.recover(epoch)
        for name in self.staging.directories(self.directory):
            if name.isdecimal() and int(name) >= epoch:
                self.staging.remove_directory(f"{self.directory}/{name}")
        if self.kept is not None:
            self.kept.forget()
            self.kept.seen(recorded)
            if recorded and self.kept.epochs():
                self._send_kept(self.kept)

    def _make_folder(self) -> None:
        """A later job looks whether it is there."""
        try:
            self.staging.make_directory("")
        except OSError as e:
            raise unwritten(self.staging, e) from None

    def finish(self) -> None:
        """The first sink of a group comes first, and asks for all of it whether readers see the last epoch:
        the next start does not send it again."""
        for _ in range(_LAST_TRIES):
            if self.kept is not None and self.kept.epochs():
                self._send_kept(self.kept)
        if self.kept is not None and self.kept.epochs():
            raise ConnectorError(
                f"The cluster of topic '{self.topic}' acknowledges epoch {max(self.kept.epochs())}, and does"
                " not show it."
            )
        self.outbox.close()
        self.staging.remove_directory(self.directory)
        self.staging.prune(self.directory.rpartition("/")[0])


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
    kept: Kept | None = None
    if exactly:
        name = f"{options['sink.transactional-id-prefix']}-{name}"
        kept = Kept(storage=storage, directory=directory, name=name)
        outbox = Transactions(
            given=given,
            name=name,
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
        kept=kept,
        given=given,
        former=request.former,
        elsewhere=tuple(place for place in request.kept if place != storage.full_path("")),
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


def _files(tokens: list[str]) -> list[list[tuple[str, str]]]:
    """Per task what its files are, and their names."""
    return [[(what, name) for name, what, _ in json.loads(token)["files"]] for token in tokens]
