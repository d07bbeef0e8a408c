"""The kill proof of Kafka with few kills, and what it stands on."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from tests.connectors.kafka import have_classes
from tests.connectors.kafka_proof.job import SUMS
from tests.connectors.kafka_proof.messages import LATENESS, PARTITIONS, Change, changes, ends
from tests.connectors.kafka_proof.proof import WAYS, prove
from tests.connectors.kafka_proof.readers import Sums, missing


def test_a_part_of_an_epoch_is_found() -> None:
    whole: Sums = {
        ("1", "n"): (2, 30),
        ("1", "s"): (1, 5),
        ("1", "all"): (3, 35),
        ("2", "n"): (1, 1),
        ("2", "all"): (1, 1),
    }
    assert missing(whole) == []
    for key in whole:
        assert len(missing({k: row for k, row in whole.items() if k != key})) == 1
    assert missing(whole | {("1", "s"): (1, 6)}) == ["('1',): all (3, 35), together (3, 36)"]


def test_no_change_is_late() -> None:
    """What a window gets does not depend on how far each topic was read."""
    made = changes(500, 3)
    assert sum(count for found in ends(made).values() for count in found.values()) == 500
    latest = {table: _time(made[0]) for table in PARTITIONS}
    delays = {"accounts": datetime.timedelta(0), "orders": datetime.timedelta(seconds=LATENESS)}
    for change in made:
        assert _time(change) >= latest[change.table] - delays[change.table]
        latest[change.table] = max(latest[change.table], _time(change))


@pytest.mark.usefixtures("processes")
@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_a_job_and_its_broker_are_killed(tmp_path: Path) -> None:
    """Each part dies once; the sinks have what they have alone, and nobody has seen half an epoch."""
    if not have_classes():
        pytest.skip("NO KAFKA IS TESTED: its classes cannot be had from Maven (mvn, Maven Central)")
    parts = WAYS[:4]
    proof = prove(tmp_path, kills=len(parts), seed=1, minutes=12, messages=600)
    assert not proof.refused
    assert not proof.differences
    assert proof.killed == dict.fromkeys(parts, 1)
    assert {f"{sink} {sums}" for sink in ("table", "delta") for sums in SUMS} < {*proof.looks}
    assert {f"topic round_{proof.rounds}_{sums}" for sums in SUMS} < {*proof.looks}


def _time(change: Change) -> datetime.datetime:
    told = json.loads(change.value)
    return datetime.datetime.fromisoformat((told["after"] or told["before"])["at"])
