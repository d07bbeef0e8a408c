"""A Kafka broker for tests, and what is in its topics."""

from __future__ import annotations

import importlib.util
import itertools
import random
import socket
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

_SCRIPT = Path(__file__).parents[2] / "scripts" / "kafka_broker.py"
USER, PASSWORD = "reader", "pass word"
_LISTENERS = """listeners=PLAINTEXT://127.0.0.1:{0},CONTROLLER://127.0.0.1:{1},{3}://127.0.0.1:{2}
advertised.listeners=PLAINTEXT://127.0.0.1:{0},{3}://127.0.0.1:{2}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{3}:{3}
"""
_SASL = f"""listener.name.sasl_plaintext.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.sasl_plaintext.plain.sasl.jaas.config=\\
  org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";
listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config=\\
  org.apache.kafka.common.security.scram.ScramLoginModule required;
"""
Record = tuple[str | None, str | None]
"""Key and value."""
EARLIEST = {"scan.startup.mode": "earliest-offset"}
LATEST = {"scan.bounded.mode": "latest-offset"}
BOUNDED = {**EARLIEST, **LATEST}


@cache
def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kafka_broker", _SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def have_classes() -> bool:
    try:
        _script().fetch(_script().CLASSES)
    except SystemExit:
        return False
    return True


@dataclass(slots=True)
class Broker:
    """``process`` is None while it is stopped. ``protocol``: of a second listener; ``settings``: its own."""

    port: int
    directory: Path
    protocol: str
    settings: str
    process: subprocess.Popen[bytes] | None = None
    numbers: Iterator[int] = field(default_factory=itertools.count)
    client: AdminClient | None = None

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        listeners = _LISTENERS.format(self.port, self.port + 1, self.port + 2, self.protocol)
        self.process = _script().start(self.port, self.directory, listeners + self.settings)

    @property
    def secured(self) -> str:
        """The servers of the second listener, which wants the login of ``USER`` unless it is said else."""
        return f"127.0.0.1:{self.port + 2}"

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def options(self, more: Mapping[str, str]) -> dict[str, str]:
        """Of a table."""
        plain = {"connector": "kafka", "properties.bootstrap.servers": self.servers}
        formats = {} if "value.format" in more else {"format": "json"}
        return {**plain, **formats, **more}

    def ddl(self, name: str, columns: str, more: Mapping[str, str]) -> str:
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in self.options(more).items())
        return f"CREATE TABLE {name} ({columns}) WITH ({listed})"

    def topic(self, partitions: int = 1, name: str = "", settings: Mapping[str, str] | None = None) -> str:
        """The name of a new topic."""
        made = name or f"topic-{next(self.numbers)}"
        wanted = NewTopic(made, partitions, 1, config=dict(settings or {}))
        self.admin().create_topics([wanted])[made].result()
        return made

    def admin(self) -> AdminClient:
        """Whoever lets go of it ends what it has been asked."""
        if self.client is None:
            self.client = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        return self.client

    def produce(self, topic: str, records: Iterable[Record], partition: int = 0, **more: Any) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "log_level": 0})
        for key, value in records:
            producer.produce(topic, value, key, partition, **more)
        assert producer.flush(30) == 0

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """The offsets of a consumer group, which are there when this returns."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": group, "log_level": 0})
        told = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        consumer.commit(offsets=told, asynchronous=False)
        consumer.close()

    def messages(self, topic: str, isolation: str = "read_committed") -> list[Message]:
        """All that is there, partition by partition."""
        settings = {
            "bootstrap.servers": self.servers,
            "group.id": "tests",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
        consumer = Consumer(settings)
        found: list[Message] = []
        for partition in sorted(consumer.list_topics(topic, 30).topics[topic].partitions):
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
            while True:
                message = consumer.poll(30)
                assert message is not None
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF
                    break
                found.append(message)
        consumer.close()
        return found

    def records(self, topic: str, isolation: str = "read_committed") -> list[Record]:
        return [(_text(m.key()), _text(m.value())) for m in self.messages(topic, isolation)]


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def _free_port() -> int:
    """The first of three that nobody listens at."""
    while True:
        port = random.randrange(20_000, 32_000)
        with ExitStack() as bound:
            try:
                for number in range(port, port + 3):
                    bound.enter_context(socket.socket()).bind(("127.0.0.1", number))
            except OSError:
                continue
        return port


@contextmanager
def broker(directory: Path, protocol: str = "SASL_PLAINTEXT", settings: str = _SASL) -> Iterator[Broker]:
    """``protocol`` and ``settings`` as of Broker."""
    running = Broker(_free_port(), directory, protocol, settings)
    running.start()
    try:
        yield running
    finally:
        if running.process is not None:
            running.kill()
