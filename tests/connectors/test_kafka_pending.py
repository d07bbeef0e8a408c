"""Transactions that jobs have left open, ended from the command line."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from tests.connectors.kafka import Broker
from tidemill.client.main import main


def left_open(broker: Broker, name: str, topic: str) -> Producer:
    """The producer of a transaction with a message in ``topic``."""
    settings = {"bootstrap.servers": broker.servers, "transactional.id": name, "log_level": 0}
    producer = Producer({**settings, "transaction.timeout.ms": 600_000})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "lost")
    assert producer.flush(30) == 0
    return producer


def test_open_transactions_of_a_prefix_are_ended_and_no_others(
    kafka: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, others = kafka.topic(), kafka.topic()
    abandoned = [left_open(kafka, name, ours) for name in ("gone-b-0", "gone-a-0")]
    left_open(kafka, "gone-done", ours).commit_transaction(30)
    stays = left_open(kafka, "stays-0", others)
    kafka.produce(ours, [(None, "behind")])
    kafka.produce(others, [(None, "behind")])

    def run(*arguments: str) -> list[str]:
        assert main(["kafka", "abort-pending", kafka.servers, *arguments]) == 0
        return capsys.readouterr().out.split()

    assert run("--prefix", "gone", "--dry-run") == ["gone-a-0", "gone-b-0"]
    assert kafka.records(ours) == []
    assert run("--prefix", "gone") == ["gone-a-0", "gone-b-0"]
    assert kafka.records(ours) == [(None, "lost"), (None, "behind")]  # the first is the committed one
    assert run("--prefix", "gone") == []
    assert kafka.records(others) == []
    assert run("stays-0") == ["stays-0"]
    assert kafka.records(others) == [(None, "behind")]
    del abandoned, stays


def test_what_is_ended_must_be_said(kafka: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kafka", "abort-pending", kafka.servers]) == 1
    assert "Name transactional ids, or give --prefix" in capsys.readouterr().err
    assert main(["kafka", "abort-pending", kafka.servers, "x", "--property", "security.protocol=NONE"]) == 1
    assert "security.protocol" in capsys.readouterr().err
