"""Which sources are waited for, and which wait: by the clock, and by each other's watermarks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Session
from tidemill.changelog.watermarks import END
from tidemill.errors import TidemillError
from tidemill.runtime.event_time.pace import Pace, Paces, pace_of


def test_sources_without_rows_are_idle_after_their_time() -> None:
    paces = Paces(paces={"a": Pace(timeout=10), "b": Pace()})
    active = {"a": 100, "b": 0}
    assert paces.idle(active, {}, 109) == frozenset()
    assert paces.next_idle(active, {}, 109) == 110
    assert paces.idle(active, {}, 110) == {"a"}
    assert paces.next_idle(active, {}, 110) is None
    assert paces.idle(active, {"a": END}, 110) == frozenset()
    assert paces.least({"a": 5, "b": 9}, frozenset()) == 5
    assert paces.least({"a": 5, "b": 9}, frozenset({"a"})) == 9
    alone = Paces(paces={"a": Pace(timeout=10)})
    assert alone.waits_for_all
    assert alone.idle({"a": 0}, {}, 1000) == frozenset()


def test_sources_of_a_group_wait_for_each_other() -> None:
    paces = Paces(
        paces={
            "a": Pace(group="g", drift=5),
            "b": Pace(group="g", drift=20),
            "c": Pace(),
            "d": Pace(group="h"),
        }
    )
    assert paces.held({"a": 16, "b": 10, "c": 99, "d": 0}, frozenset()) == {"a"}
    assert paces.held({"a": 15, "b": 10, "c": 99}, frozenset()) == frozenset()
    assert paces.held({"a": 10, "b": 31}, frozenset({"a"})) == frozenset()
    assert paces.held({"a": 10, "b": 31}, frozenset()) == {"b"}
    assert paces.held({"a": END, "b": 31}, frozenset()) == frozenset()
    # Nobody goes on before all of the group have begun.
    assert paces.held({"b": 31}, frozenset()) == {"b"}
    assert paces.held({}, frozenset()) == frozenset()


def test_what_a_table_says_comes_before_what_the_session_says() -> None:
    assert pace_of({}, 7) == Pace(timeout=7)
    assert pace_of({"scan.watermark.idle-timeout": "1 s"}, 7) == Pace(timeout=1000)
    group = {"scan.watermark.alignment.group": "g", "scan.watermark.alignment.max-drift": "2 s"}
    assert pace_of({**group, "scan.watermark.emit.strategy": "on-event"}, 0) == Pace(group="g", drift=2000)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scan.watermark.emit.strategy": "never"}, "scan.watermark.emit.strategy"),
        ({"scan.watermark.alignment.group": "g"}, "must be set together"),
        ({"scan.watermark.emit.on-event.gap": "3"}, "is not supported"),
        ({"scan.watermark.idle-timeout": "soon"}, "'soon' is not a duration"),
    ],
)
def test_options_that_say_nothing(options: dict[str, str], message: str) -> None:
    with pytest.raises(TidemillError, match=message):
        pace_of(options, 0)


def test_windows_go_on_without_an_idle_table(tmp_path: Path, spark: SparkSession) -> None:
    """The quiet table has had its last row long before the other; its late row comes when it is back."""
    for name, times in (("busy", (1, 7, 13)), ("quiet", (2,))):
        (tmp_path / name).mkdir()
        text = "".join(f"2024-05-01 00:00:{t:02d},{t}\n" for t in times)
        (tmp_path / name / "a.csv").write_text(text)
    made = Session({})
    looks = iter(range(10_000_000))
    made.environment.context.clock = lambda: next(looks) / 10
    for name, timeout in (("busy", "0 s"), ("quiet", "2 s")):
        made.execute(
            f"CREATE TABLE {name} (ts TIMESTAMP(3), n INT, WATERMARK FOR ts AS ts) WITH"
            f" ('connector' = 'filesystem', 'path' = '{tmp_path / name}', 'format' = 'csv',"
            f" 'source.monitor-interval' = '10 ms', 'scan.watermark.idle-timeout' = '{timeout}')"
        )
    made.execute(
        "CREATE TEMPORARY VIEW b AS SELECT * FROM busy UNION ALL SELECT * FROM quiet",
    )
    query = (
        "SELECT EXTRACT(SECOND FROM window_end) AS e, SUM(n) AS s"
        " FROM TABLE(TUMBLE(TABLE b, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY window_start, window_end"
    )
    with made.environment.execute_sql(query).collect() as rows:
        coming = iter(rows)
        # With the quiet table time has come to 2, without it to 13.
        assert [tuple(next(coming)), tuple(next(coming))] == [(5, 3), (10, 7)]
        late = "2024-05-01 00:00:04,100\n2024-05-01 00:00:11,11\n2024-05-01 00:00:16,16\n"
        (tmp_path / "quiet" / ".b.tmp").write_text(late)
        (tmp_path / "quiet" / ".b.tmp").rename(tmp_path / "quiet" / "b.csv")
        (tmp_path / "busy" / ".b.tmp").write_text("2024-05-01 00:00:16,1\n")
        (tmp_path / "busy" / ".b.tmp").rename(tmp_path / "busy" / "b.csv")
        assert tuple(next(coming)) == (15, 24)
    assert sum(p.late for p in made.progress) == 1
