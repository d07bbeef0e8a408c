"""What the driver does with answers of a cluster that has just started; without a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tidemill.connectors.kafka import cluster
from tidemill.connectors.kafka.cluster import KafkaCluster
from tidemill.connectors.kafka.failures import Login
from tidemill.errors import ConnectorError


@dataclass
class Answering:
    """Stands for the client: gives ``answers`` in turn, error codes or results; None never comes."""

    answers: Iterator[Any]
    asked: int = 0
    polled: Callable[[], None] = lambda: None

    def poll(self, seconds: float) -> None:
        """As of a client, which tells its errors meanwhile."""
        self.polled()

    def list_offsets(self, request: dict[TopicPartition, Any], **_: Any) -> dict[TopicPartition, Future[Any]]:
        return dict.fromkeys(request, self._next())

    def list_consumer_group_offsets(self, request: list[Any], **_: Any) -> dict[str, Future[Any]]:
        return {"g": self._next()}

    def _next(self) -> Future[Any]:
        self.asked += 1
        answer, made = next(self.answers), Future[Any]()
        if answer is None:
            return made
        if isinstance(answer, int):
            made.set_exception(KafkaException(KafkaError(answer)))
        else:
            made.set_result(answer)
        return made


def asked(*answers: Any) -> tuple[KafkaCluster, Answering]:
    client = Answering(iter(answers))
    return KafkaCluster(given={"bootstrap.servers": "b"}, _admin=cast(AdminClient, client)), client


@pytest.fixture(autouse=True)
def hurried() -> Iterator[None]:
    with patch.object(cluster, "_PAUSE", 0.0):
        yield


def test_a_group_whose_coordinator_is_still_loading_is_asked_again() -> None:
    told = ConsumerGroupTopicPartitions("g", [TopicPartition("t", 0, 7), TopicPartition("t", 1, -1001)])
    made, client = asked(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR, told)
    assert made.committed("g", [("t", 0), ("t", 1)]) == {("t", 0): 7}
    assert client.asked == 3


def test_a_partition_that_has_no_leader_yet_is_asked_again() -> None:
    made, client = asked(KafkaError.LEADER_NOT_AVAILABLE, SimpleNamespace(offset=5))
    assert made.latest([("t", 0)]) == {("t", 0): 5}
    assert client.asked == 2


def test_a_broker_that_dies_while_it_is_asked_is_asked_again() -> None:
    one, client = asked(KafkaError._TRANSPORT, SimpleNamespace(offset=9))
    assert one.latest([("t", 0)]) == {("t", 0): 9}
    assert client.asked == 2


def test_a_refusal_is_told_at_once() -> None:
    made, client = asked(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(ConnectorError, match=r"b, topic 't', partition 0: .*authorization") as raised:
        made.earliest([("t", 0)])
    assert "rights on the topic" in raised.value.hint
    assert client.asked == 1


def test_a_cluster_that_never_answers_is_told_after_a_while() -> None:
    made, client = asked(*[KafkaError.COORDINATOR_NOT_AVAILABLE] * 3)
    with patch.object(cluster, "TIMEOUT", -1.0), pytest.raises(ConnectorError, match="group 'g'"):
        made.committed("g", [("t", 0)])
    assert client.asked == 1


def refused(made: KafkaCluster, client: Answering, *, before: bool) -> Callable[[], None]:
    """What a client tells that is refused ``before`` the question, or after it."""
    error = KafkaError(KafkaError._AUTHENTICATION, "who are you?")
    return lambda: made.login(error) if before is not bool(client.asked) else None


def test_a_login_that_is_refused_ends_the_wait_for_an_answer() -> None:
    made, client = asked(None)
    client.polled = refused(made, client, before=False)
    with patch.object(cluster, "_LOOK_SECONDS", 0.0), pytest.raises(ConnectorError, match="b: who") as raised:
        made.latest([("t", 0)])
    assert "sasl.jaas.config" in raised.value.hint


def test_a_login_that_was_refused_before_the_question_does_not_count() -> None:
    made, client = asked(SimpleNamespace(offset=5))
    client.polled = refused(made, client, before=True)
    assert made.latest([("t", 0)]) == {("t", 0): 5}


@pytest.mark.parametrize(
    ("told", "refused"),
    [
        ([KafkaError._AUTHENTICATION] * 2, True),
        ([KafkaError._SSL] * 2, True),
        ([KafkaError._AUTHENTICATION, KafkaError._ALL_BROKERS_DOWN] * 2, True),
        ([KafkaError._AUTHENTICATION], False),
        ([KafkaError._AUTHENTICATION, KafkaError._TRANSPORT] * 2, False),
        ([KafkaError._ALL_BROKERS_DOWN] * 3, False),
    ],
)
def test_a_connection_that_is_lost_during_a_login_is_no_refusal(told: list[int], refused: bool) -> None:
    login = Login()
    for code in told:
        login(KafkaError(code))
    assert (login.refused is not None) is refused
