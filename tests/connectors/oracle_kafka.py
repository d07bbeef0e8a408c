"""Scripts for Flink's Kafka connector run as they are: recorded answers of Flink 2.3 and its connector 5.0.

Tidemill's topics have the messages that Flink has sent, and Tidemill reads the topics that Flink has written.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.connectors.kafka import Broker
from tests.connectors.kafka_answers import NAMES, RECORDED, compare, contents, final, prepare, tidemill

ANSWERS: dict[str, Any] = json.loads(RECORDED.read_text())
FIRST = "metadata_write"
"""It has keys, values, headers and timestamps, and reads them."""
SMALL_EPOCHS = {"tidemill.epoch.max-rows": "2"}


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
