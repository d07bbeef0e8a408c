"""What others see of a run: all the time, and at its end.

``Readers`` polls the topics (``read_committed``), the tables and the Delta tables while the job runs, and
looks whether in each of them, by itself, the row for all regions is the sum of the others.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from tests.connectors.kafka import Broker
from tests.connectors.kafka_proof.job import ALL, SUMS, Place
from tests.connectors.lake import delta_rows
from tests.runtime.databases import query

Sums = dict[tuple[str, ...], tuple[int, int]]
"""By key: how many and how much."""


@dataclass
class Topic:
    """A topic by key. ``sent``: how often each key was, and each key with its value."""

    rows: Sums = field(default_factory=dict)
    sent: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def take(self, message: Message) -> None:
        key = _key(json.loads(message.key() or b""))
        self.sent[key] += 1
        value = message.value()
        if value is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = _measures(json.loads(value))


class Readers:
    """``parts``: what was seen of which a part was missing; ``looks``: how often there was something in
    which sink."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.parts: list[str] = []
        self.looks: Counter[str] = Counter()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._topics), threading.Thread(target=self._tables)]
        self._failed: list[BaseException] = []

    def __enter__(self) -> Readers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        if self._failed:
            raise self._failed[0]

    def _topics(self) -> None:
        with self._told():
            consumer = _consumer(self.place.servers)
            found = {self.place.sink(sums): Topic() for sums in SUMS}
            consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING) for name in found])
            while not self._ended.is_set():
                message = consumer.poll(0.2)
                if message is None:
                    continue
                error, topic = message.error(), found.get(message.topic() or "")
                if error is None and topic is not None:
                    topic.take(message)
                elif topic is not None and error is not None and error.code() == KafkaError._PARTITION_EOF:
                    self._look(f"topic {message.topic()}", topic.rows)
            consumer.close()

    def _tables(self) -> None:
        seen: dict[str, int] = {}
        with self._told():
            while not self._ended.wait(0.3):
                for sums in SUMS:
                    self._look(f"table {sums}", table(self.place, sums))
                    with contextlib.suppress(TableNotFoundError):
                        version = DeltaTable(self.place.delta(sums)).version()
                        if seen.get(sums) != version:
                            seen[sums] = version
                            self._look(f"delta {sums}", delta(self.place, sums))

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except BaseException as e:
            self._failed.append(e)

    def _look(self, what: str, rows: Sums) -> None:
        self.looks[what] += bool(rows)
        self.parts += [f"{what}: {part}" for part in missing(rows)]


def missing(rows: Sums) -> list[str]:
    """Where the row for all regions is not the sum of the others."""
    whole: dict[tuple[str, ...], tuple[int, int]] = {}
    added: dict[tuple[str, ...], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for (*group, region), (n, s) in rows.items():
        if region == ALL:
            whole[tuple(group)] = (n, s)
        else:
            before = added[tuple(group)]
            added[tuple(group)] = (before[0] + n, before[1] + s)
    groups = sorted({*whole, *added})
    return [
        f"{group}: all {whole.get(group)}, together {added.get(group)}"
        for group in groups
        if whole.get(group) != added.get(group)
    ]


def topic(broker: Broker, place: Place, sums: str) -> Topic:
    found = Topic()
    for message in broker.messages(place.sink(sums)):
        found.take(message)
    return found


def table(place: Place, sums: str) -> Sums:
    rows = query(place.database, f"SELECT * FROM {place.sink(sums)}")
    return {tuple(key): (n, s) for *key, n, s in rows}


def delta(place: Place, sums: str) -> Sums:
    return _rows(delta_rows(place.delta(sums)))


def _rows(found: Iterable[dict[str, Any]]) -> Sums:
    return {_key(row): _measures(row) for row in found}


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return (row["w"], row["r"]) if "w" in row else (row["r"],)


def _measures(row: dict[str, Any]) -> tuple[int, int]:
    return row["n"], row["s"]


def _consumer(servers: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "readers",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
