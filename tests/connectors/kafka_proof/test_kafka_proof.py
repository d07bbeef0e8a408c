"""What the kill proof of Kafka stands on: its messages, and how a part of an epoch is found."""

from __future__ import annotations

import datetime
import json

from tests.connectors.kafka_proof.messages import LATENESS, PARTITIONS, Change, changes, ends
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


def _time(change: Change) -> datetime.datetime:
    told = json.loads(change.value)
    return datetime.datetime.fromisoformat((told["after"] or told["before"])["at"])
