"""Options of ``kafka`` and ``upsert-kafka``, under Flink's names, and what they say together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import NotSupportedError, ValidationError

GROUP_OFFSETS, TIMESTAMP, SPECIFIC = "group-offsets", "timestamp", "specific-offsets"
EARLIEST, LATEST, UNBOUNDED = "earliest-offset", "latest-offset", "unbounded"
EXACTLY_ONCE = "exactly-once"
PROPERTIES = "properties."

_TOPICS = ConnectorOption(key="topic", doc="Topic, or topics separated by ';' (a sink has one).")
_PATTERN = ConnectorOption(
    key="topic-pattern", doc="Regular expression that whole names of topics match; of a source."
)
_PROPERTIES = ConnectorOption(
    key=PROPERTIES,
    kind="map",
    doc="Properties of the Kafka client: bootstrap.servers, group.id, security.protocol, sasl.*, ssl.*, ...",
)
_BOUNDS = (
    ConnectorOption(
        key="scan.bounded.mode",
        default=UNBOUNDED,
        choices=(UNBOUNDED, LATEST, GROUP_OFFSETS, TIMESTAMP, SPECIFIC),
        doc="Where the table ends.",
    ),
    ConnectorOption(key="scan.bounded.timestamp-millis", kind="int", doc="End, for the mode timestamp."),
    ConnectorOption(
        key="scan.bounded.specific-offsets",
        doc="Ends, for the mode specific-offsets: partition:0,offset:42;partition:1,offset:300.",
    ),
)
_SINK = (
    ConnectorOption(
        key="sink.delivery-guarantee",
        default="at-least-once",
        choices=(EXACTLY_ONCE, "at-least-once", "none"),
        doc="exactly-once: an epoch is one transaction. The others need no transactions.",
    ),
    ConnectorOption(
        key="sink.transactional-id-prefix", doc="For exactly-once: the start of the transactional id."
    ),
    ConnectorOption(
        key="sink.transaction-naming-strategy",
        default="INCREMENTING",
        choices=("INCREMENTING", "POOLING"),
        doc="Accepted; a job has one transactional id.",
    ),
    ConnectorOption(key="sink.parallelism", kind="int", least=1, doc="Accepted, unused."),
    ConnectorOption(
        key="sink.staging-path",
        doc="Directory for rows between their epoch and its commit; default: one of this user's own.",
    ),
)
_KEYED = (
    ConnectorOption(key="key.fields-prefix", default="", doc="Prefix of the columns of the key."),
    ConnectorOption(
        key="value.fields-include",
        default="ALL",
        choices=("ALL", "EXCEPT_KEY"),
        doc="Whether the columns of the key are in the value, too.",
    ),
)
KAFKA_OPTIONS = (
    _TOPICS,
    _PATTERN,
    _PROPERTIES,
    ConnectorOption(key="format", doc="Format of the value; the same as value.format."),
    ConnectorOption(key="value.format", doc="Format of the value."),
    ConnectorOption(key="key.format", doc="Format of the key."),
    ConnectorOption(key="key.fields", doc="Columns of the key, separated by ';'."),
    *_KEYED,
    ConnectorOption(
        key="scan.startup.mode",
        default=GROUP_OFFSETS,
        choices=(EARLIEST, LATEST, GROUP_OFFSETS, TIMESTAMP, SPECIFIC),
        doc="Where the table begins.",
    ),
    ConnectorOption(key="scan.startup.timestamp-millis", kind="int", doc="Begin, for the mode timestamp."),
    ConnectorOption(
        key="scan.startup.specific-offsets",
        doc="Begins, for the mode specific-offsets: partition:0,offset:42;partition:1,offset:300.",
    ),
    *_BOUNDS,
    ConnectorOption(
        key="scan.topic-partition-discovery.interval",
        kind="duration",
        default="5 min",
        doc="How often to look for new topics and partitions; 0: never.",
    ),
    ConnectorOption(key="scan.parallelism", kind="int", least=1, doc="Number of reading tasks."),
    ConnectorOption(
        key="sink.partitioner",
        default="default",
        doc="default: by the key's hash; fixed: by the task; round-robin: messages without a key in turn.",
    ),
    *_SINK,
)
UPSERT_OPTIONS = (
    _TOPICS,
    _PATTERN,
    _PROPERTIES,
    ConnectorOption(key="key.format", required=True, doc="Format of the key."),
    ConnectorOption(key="value.format", required=True, doc="Format of the value."),
    *_KEYED,
    *_BOUNDS,
    ConnectorOption(key="scan.parallelism", kind="int", least=1, doc="Number of reading tasks."),
    ConnectorOption(
        key="sink.buffer-flush.max-rows", kind="int", default="0", doc="Accepted; an epoch is a flush."
    ),
    ConnectorOption(
        key="sink.buffer-flush.interval",
        kind="duration",
        default="0 s",
        doc="Accepted; an epoch is a flush, which writes each key once.",
    ),
    *_SINK,
)
_ONE_OFFSET = re.compile(r"partition:(\d+),offset:(\d+)")
_PARTITIONERS = ("default", "fixed", "round-robin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One end of a table: ``mode`` with the milliseconds or the offsets by partition that it needs."""

    mode: str
    millis: int | None = None
    offsets: Mapping[int, int] | None = None


def bound(options: OptionValues, which: str) -> Bound:
    """``which``: startup or bounded. ValidationError where the mode lacks what it needs."""
    prefix = f"scan.{which}."
    mode = options[f"{prefix}mode"].lower()
    needed = {TIMESTAMP: f"{prefix}timestamp-millis", SPECIFIC: f"{prefix}specific-offsets"}.get(mode)
    if needed is None:
        return Bound(mode=mode)
    given = options[needed]
    if given is None:
        raise ValidationError(f"'{needed}' is required in '{mode}' {which} mode but missing.")
    if mode == TIMESTAMP:
        return Bound(mode=mode, millis=given)
    return Bound(mode=mode, offsets=_offsets(needed, given))


def _offsets(key: str, text: str) -> dict[int, int]:
    found = [_ONE_OFFSET.fullmatch(part.strip()) for part in text.rstrip("; ").split(";")]
    if None in found:
        raise ValidationError(
            f"Invalid properties '{key}' should follow the format"
            f" 'partition:0,offset:42;partition:1,offset:300', but is '{text}'."
        )
    return {int(match[1]): int(match[2]) for match in found if match is not None}


def topics(options: OptionValues) -> tuple[str, ...]:
    """The names in 'topic'; none where a pattern is given."""
    given = options["topic"]
    return () if given is None else tuple(name.strip() for name in given.split(";") if name.strip())


def check_topics(options: OptionValues) -> None:
    """Names or a pattern."""
    named, matched = bool(topics(options)), options["topic-pattern"] is not None
    if named and matched:
        raise ValidationError("Option 'topic' and 'topic-pattern' shouldn't be set together.")
    if not (named or matched):
        raise ValidationError("Either 'topic' or 'topic-pattern' must be set.")


def check_sink(options: OptionValues, identifier: str) -> None:
    """What a sink needs, beyond what a source needs."""
    if len(topics(options)) != 1:
        raise NotSupportedError(
            f"A sink of connector '{identifier}' that writes several topics",
            expected=("one name in 'topic'",),
        )
    if (
        options["sink.delivery-guarantee"].lower() == EXACTLY_ONCE
        and not options["sink.transactional-id-prefix"]
    ):
        raise ValidationError(
            "sink.transactional-id-prefix must be specified when using DeliveryGuarantee.EXACTLY_ONCE."
        )


def partitioner(options: OptionValues) -> str:
    """NotSupportedError for a class of Java's."""
    name: str = options["sink.partitioner"]
    if name not in _PARTITIONERS:
        raise NotSupportedError(
            f"'sink.partitioner' = '{name}': partitioners in Java", expected=_PARTITIONERS
        )
    return name
