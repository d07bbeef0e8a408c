"""Scripts for Flink's Kafka connector run as they are: recorded answers of Flink 2.3 and its connector 5.0.

Tidemill's topics have the messages that Flink has sent, Tidemill reads the topics that Flink has written, and
Flink those that Tidemill has written.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.connectors.kafka import Broker
from tests.connectors.kafka_answers import (
    NAMES,
    READ_BY_FLINK,
    RECORDED,
    SMALL_EPOCHS,
    compare,
    contents,
    final,
    prepare,
    tidemill,
    writes,
)

ANSWERS: dict[str, Any] = json.loads(RECORDED.read_text())
READ: dict[str, Any] = json.loads(READ_BY_FLINK.read_text())
FIRST = "metadata_write"
"""It has keys, values, headers and timestamps, and reads them."""


@pytest.mark.one_case
@pytest.mark.parametrize("name", [FIRST, *(name for name in NAMES if name != FIRST)])
def test_a_script_gives_what_flink_gives(kafka: Broker, spark: object, name: str) -> None:
    prepare(kafka, name, f"own_{name}")
    answers = tidemill(kafka, name, f"own_{name}", SMALL_EPOCHS)
    assert answers == ANSWERS[name]["answers"]
    compare(name, contents(kafka, name, f"own_{name}"), ANSWERS[name]["topics"])


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_what_flink_has_written_is_read(kafka: Broker, spark: object, name: str) -> None:
    prepare(kafka, name, f"flinks_{name}", ANSWERS[name]["topics"])
    found = tidemill(kafka, name, f"flinks_{name}", SMALL_EPOCHS, reads=True)
    assert final(name, found) == final(name, ANSWERS[name]["answers"])


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in NAMES if writes(name)])
def test_flink_reads_what_is_written_here(kafka: Broker, spark: object, name: str) -> None:
    """The topics are those that Flink has read; it has found in them what it finds in its own."""
    run = f"again_{name}"
    prepare(kafka, name, run)
    tidemill(kafka, name, run, SMALL_EPOCHS)
    compare(name, contents(kafka, name, run), READ[name]["topics"])
    assert READ[name]["answers"] == final(name, ANSWERS[name]["answers"])


@pytest.mark.parametrize("name", ["canal_json", "debezium_json", "maxwell_json"])
def test_a_changelog_is_compared_by_the_rows_that_it_leads_to(name: str) -> None:
    topics = ANSWERS[name]["topics"]
    (changed,) = (topic for topic in topics if topic != "orders")
    messages = topics[changed]
    compare(name, topics, topics)
    for place in range(len(messages)):
        with pytest.raises(AssertionError):
            compare(name, topics | {changed: messages[:place] + messages[place + 1 :]}, topics)
    with pytest.raises(AssertionError, match="has more"):
        compare(name, topics | {changed: [*messages, messages[0]]}, topics)


def test_an_epoch_may_leave_out_what_it_takes_back() -> None:
    name, changed = "debezium_json", "totals"
    topics = ANSWERS[name]["topics"]
    messages = topics[changed]
    compare(name, topics | {changed: [messages[1], *messages[3:]]}, topics)
