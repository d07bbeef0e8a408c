"""Clients with user and password: they get in with the right ones, and say so if they are refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.certificates import certificate
from tests.connectors.kafka import BOUNDED, PASSWORD, USER, Broker, broker
from tests.runtime.running import Session, folded
from tidemill.connectors.kafka import cluster, pending, sending, transactions
from tidemill.connectors.kafka.cluster import KafkaCluster
from tidemill.connectors.kafka.consuming import RangeReader
from tidemill.connectors.kafka.offsets import KafkaRange
from tidemill.connectors.kafka.properties import Properties
from tidemill.connectors.kafka.sending import Plain
from tidemill.connectors.kafka.transactions import Transactions
from tidemill.errors import ConnectorError
from tidemill.files.storage import Storage

pytestmark = pytest.mark.thorough

MODULES = {"PLAIN": "plain.PlainLoginModule", "SCRAM-SHA-256": "scram.ScramLoginModule"}
PATIENT = (cluster, pending, sending, transactions)
SECONDS = 10.0
"""For which they wait for an answer here."""


def login(broker: Broker, mechanism: str = "PLAIN", password: str = PASSWORD) -> dict[str, str]:
    """The properties, as Java's client has them."""
    module = f"org.apache.kafka.common.security.{MODULES[mechanism]}"
    return {
        "bootstrap.servers": broker.secured,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="{USER}" password="{password}";',
    }


@pytest.mark.parametrize("mechanism", MODULES)
def test_a_job_reads_and_writes_with_its_login(
    kafka: Broker, spark: object, tmp_path: Path, mechanism: str
) -> None:
    iterations = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    made = UserScramCredentialUpsertion(USER, iterations, PASSWORD.encode())
    kafka.admin().alter_user_scram_credentials([made])[USER].result()
    source, target = kafka.topic(), kafka.topic()
    kafka.produce(source, [(None, '{"a": 1}'), (None, '{"a": 2}')])
    known = {f"properties.{key}": value for key, value in login(kafka, mechanism).items()}
    sent = {
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": target,
        "sink.staging-path": f"{tmp_path}/staging",
    }
    session = Session({"execution.checkpointing.dir": f"{tmp_path}/checkpoint"})
    session.execute(
        kafka.ddl("s", "a INT", {"topic": source, **BOUNDED, **known}),
        kafka.ddl("t", "a INT", {"topic": target, **BOUNDED, **known, **sent}),
        "INSERT INTO t SELECT a FROM s",
    )
    assert folded(session.changes("SELECT a FROM t")) == {(1,): 1, (2,): 1}


ASKING: dict[str, Callable[[Properties, str, Path], object]] = {
    "planning": lambda given, topic, _: KafkaCluster(given=given).topics([topic]),
    "a pattern": lambda given, _, __: KafkaCluster(given=given).matching("t.*"),
    "reading": lambda given, topic, _: list(
        RangeReader(given=given).batches(KafkaRange(topic=topic, partition=0, start=0, end=1, number=0))
    ),
    "writing": lambda given, topic, _: Plain(given=given).check(topic),
    "a transaction": lambda given, topic, folder: Transactions(
        given=given, name=topic, topic=topic, storage=Storage(str(folder)), note="note"
    ).recover(1),
    "open transactions": lambda given, topic, _: pending.open_ids(given, topic),
    "ending one": lambda given, topic, _: pending.end(given, topic),
}


@pytest.mark.parametrize("asked", ASKING)
def test_a_refused_login_is_told(
    kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """After the time of one answer at the latest."""
    for module in PATIENT:
        monkeypatch.setattr(module, "TIMEOUT", SECONDS)
    topic = kafka.topic()
    kafka.produce(topic, [(None, "{}")])
    begun = time.monotonic()
    with pytest.raises(ConnectorError, match="Invalid username or password") as raised:
        ASKING[asked](login(kafka, password="wrong"), topic, tmp_path)
    assert "sasl.jaas.config" in raised.value.hint
    assert time.monotonic() - begun < 3 * SECONDS


def test_a_mechanism_that_the_broker_does_not_have_is_told(kafka: Broker) -> None:
    given = login(kafka) | {"sasl.mechanism": "SCRAM-SHA-512"}
    with pytest.raises(ConnectorError, match="mechanism"):
        KafkaCluster(given=given).topics(["t"])


def test_certificates_are_checked(kafka: Broker, tmp_path: Path) -> None:
    """``kafka`` says whether there is a broker."""
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    store = f"ssl.keystore.type=PEM\nssl.keystore.location={certificate(own)}\n"
    with broker(tmp_path / "kafka", protocol="SSL", settings=store) as running:
        name = running.topic()
        given = {
            "bootstrap.servers": running.secured,
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": f"{own}/server.pem",
        }
        assert KafkaCluster(given=given).topics([name])[name].partitions == (0,)
        Plain(given=given).check(name)
        with pytest.raises(ConnectorError, match="certificate") as raised:
            KafkaCluster(given=given | {"ssl.truststore.location": certificate(other)}).topics([name])
        assert "properties.ssl" in raised.value.hint
