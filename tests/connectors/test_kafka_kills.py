"""kill -9 of a job from Kafka to Kafka, at steps of commits, while it sends, and of its workers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connectors.kafka import BOUNDED, Broker

pytestmark = [pytest.mark.usefixtures("processes"), pytest.mark.thorough]

REPOSITORY = Path(__file__).parents[2]
KILLS = [("ran", 1), ("sending", 1), ("committed", 2), ("sending", 2), ("published", 1)]
ROWS = 200


def run(folder: Path, step: str, time: int) -> int:
    command = [sys.executable, "-m", "tests.connectors.kafka_victim", str(folder), step, str(time)]
    return subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, timeout=300).returncode


def sums(broker: Broker, topic: str) -> Iterator[tuple[int, int]]:
    for _, value in broker.records(topic):
        row = json.loads(value or "")
        yield row["k"], row["c"]


@pytest.mark.timeout(900)
def test_a_job_that_is_killed_again_and_again_shows_each_epoch_once(kafka: Broker, tmp_path: Path) -> None:
    source, target = kafka.topic(3), kafka.topic(2)
    for partition in range(3):
        values = [json.dumps({"k": n % 5, "v": n}) for n in range(partition, ROWS, 3)]
        kafka.produce(source, [(None, v) for v in values], partition)
    options = {
        "connector": "upsert-kafka",
        "topic": target,
        "key.format": "json",
        "value.format": "json",
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": "kills",
        "sink.staging-path": f"{tmp_path}/staging",
    }
    statements = {
        "numbers": kafka.ddl("numbers", "k INT, v BIGINT", {"topic": source, **BOUNDED}),
        "totals": kafka.ddl("totals", "k INT, c BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED", options),
        "insert": "INSERT INTO totals SELECT k, COUNT(*), SUM(v) FROM numbers GROUP BY k",
    }
    for name, text in statements.items():
        (tmp_path / f"{name}.sql").write_text(text)
    for step, time in KILLS:
        assert run(tmp_path, step, time) == -signal.SIGKILL
    assert run(tmp_path, "workers", 0) == 0
    last = {json.loads(k or "")["k"]: json.loads(v or "") for k, v in kafka.records(target)}
    assert {k: (v["c"], v["s"]) for k, v in last.items()} == {
        k: (ROWS // 5, sum(range(k, ROWS, 5))) for k in range(5)
    }
    shown = list(sums(kafka, target))
    assert len(set(shown)) == len(shown)  # no epoch twice
