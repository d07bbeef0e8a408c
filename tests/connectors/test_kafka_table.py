"""From a topic of Kafka to a table by key in Kafka and back, over crashes: the short way through all
layers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.connectors.kafka import BOUNDED, LATEST, Broker
from tests.runtime.running import Crash, Session, crash_at, folded
from tidemill.errors import ConnectorError

EXACTLY_ONCE = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": "t"}
INSERT = "INSERT INTO totals SELECT k, COUNT(*), SUM(n), MAX(o) FROM numbers WHERE p = 1 GROUP BY k"


def test_a_topic_becomes_a_table_by_key_exactly_once(kafka: Broker, spark: object, tmp_path: Path) -> None:
    """JSON with metadata in epochs, aggregated, into upsert-kafka; the driver dies at two steps of
    commits."""
    topic, counts = kafka.topic(2), kafka.topic(2)
    for partition in (0, 1):
        values = [json.dumps({"k": f"k{n % 3}", "n": n}) for n in range(10)]
        kafka.produce(topic, [(None, v) for v in values], partition)
    numbers = kafka.ddl(
        "numbers",
        "k STRING, n BIGINT, p INT METADATA FROM 'partition' VIRTUAL, o BIGINT METADATA FROM"
        " 'offset' VIRTUAL",
        {"topic": topic, **BOUNDED},
    )
    by_key = {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"}
    staging = {"sink.staging-path": f"{tmp_path}/staging"}
    totals = kafka.ddl(
        "totals",
        "k STRING, c BIGINT, s BIGINT, o BIGINT, PRIMARY KEY (k) NOT ENFORCED",
        {"topic": counts, **by_key, **LATEST, **EXACTLY_ONCE, **staging},
    )
    options = {"execution.checkpointing.dir": f"{tmp_path}/checkpoint", "tidemill.epoch.max-rows": "10"}
    with pytest.raises(Crash):
        Session(options, crash_at("committed", 1)).execute(numbers, totals, INSERT)
    assert kafka.records(counts) == []
    with pytest.raises(Crash):
        Session(options, crash_at("published", 1)).execute(numbers, totals, INSERT)
    session = Session(options)
    session.execute(numbers, totals, INSERT)
    assert session.progress == []
    written = [(json.loads(k or "")["k"], json.loads(v or "")["c"]) for k, v in kafka.records(counts)]
    assert written == sorted(set(written), key=written.index)  # nothing twice
    again = {"execution.state-recovery.path": f"{tmp_path}/checkpoint"}
    moved = totals.replace(f"{tmp_path}/staging", f"{tmp_path}/moved")
    Session({**again, "execution.checkpointing.dir": f"{tmp_path}/next"}).execute(numbers, moved, INSERT)
    places = json.loads((tmp_path / "next" / "job.json").read_text())["kept"]
    assert places == [f"{tmp_path}/moved", f"{tmp_path}/staging"]
    (tmp_path / "staging").rename(tmp_path / "gone")
    last = Session({**again, "execution.checkpointing.dir": f"{tmp_path}/last"})
    with pytest.raises(ConnectorError, match=r"The folder .*/staging is not there"):
        last.execute(numbers, moved, INSERT)
    expected = {("k0", 4, 18, 9), ("k1", 3, 12, 7), ("k2", 3, 15, 8)}
    assert folded(session.changes("SELECT * FROM totals")) == dict.fromkeys(expected, 1)
