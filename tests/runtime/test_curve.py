"""A day's curve, a point a minute: killed on its way, replayed from the start, and in batch it is one curve.

It counts users in two levels (by bucket, then by channel and over all), never dips, and its parts add up."""

from __future__ import annotations

import datetime as dt
import random
from collections import defaultdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Crash, Session, crash_at
from tests.runtime.visible import lines

EVENTS = 400
DAY = dt.datetime(2024, 5, 1)
Curve = dict[str, dict[str, int]]
"""Per channel ('' is all of them) and minute the users so far."""
QUERY = """
SELECT window_end, ch, SUM(users) FROM (
  SELECT window_start, window_end, ch, MOD(usr, 4) AS bucket, COUNT(DISTINCT usr) AS users
  FROM TABLE(CUMULATE(TABLE evt, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' DAY))
  GROUP BY window_start, window_end, ch, MOD(usr, 4)
) GROUP BY window_start, window_end, GROUPING SETS ((ch), ())
"""


def events() -> list[tuple[dt.datetime, str, int]]:
    """Users come and come back, up to two minutes out of order; each has one channel."""
    made = random.Random(20240501)
    times = sorted(made.randrange(86_400) for _ in range(EVENTS))
    users = [made.randrange(150) for _ in times]
    late = [max(0, t - made.choice((0, 0, 30, 119))) for t in times]
    return [(DAY + dt.timedelta(seconds=t), "abc"[u % 3], u) for t, u in zip(late, users, strict=True)]


def statements(folder: Path, out: str) -> tuple[str, ...]:
    return (
        "CREATE TABLE evt (ts TIMESTAMP(3), ch STRING, usr INT, WATERMARK FOR ts AS ts - INTERVAL '2' MINUTE)"
        f" WITH ('connector'='filesystem', 'path'='{folder}/evt.csv', 'format'='csv')",
        "CREATE TABLE curve (e TIMESTAMP(3), ch STRING, u BIGINT)"
        f" WITH ('connector'='filesystem', 'path'='{folder}/{out}', 'format'='csv')",
        f"INSERT INTO curve {QUERY}",
    )


def drawn(folder: Path) -> Curve:
    """What is in the sink; a point comes once."""
    curve: Curve = defaultdict(dict)
    for line in lines(folder):
        end, channel, users = line.replace('"', "").split(",")
        assert end not in curve[channel]
        curve[channel][end] = int(users)
    return curve


def expected() -> Curve:
    first: dict[int, dt.datetime] = {}
    for time, _, user in events():
        first[user] = min(time, first.get(user, time))
    curve: Curve = defaultdict(dict)
    for minute in range(1, 1441):
        end = DAY + dt.timedelta(minutes=minute)
        for channel in ("", "a", "b", "c"):
            users = [u for u, time in first.items() if time < end and channel in ("", "abc"[u % 3])]
            if users:
                curve[channel][f"{end:%Y-%m-%d %H:%M:%S}"] = len(users)
    return curve


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    (tmp_path / "evt.csv").write_text("".join(f"{t:%Y-%m-%d %H:%M:%S},{c},{u}\n" for t, c, u in events()))
    return tmp_path


def test_a_curve_is_one_however_it_is_drawn(folder: Path) -> None:
    live = {"tidemill.epoch.max-rows": "67", "execution.checkpointing.dir": str(folder / "checkpoint")}
    for step, time in (("ran", 2), ("committed", 1), ("published", 2)):
        with pytest.raises(Crash):
            Session(live, crash_at(step, time)).execute(*statements(folder, "live"))
    Session(live).execute(*statements(folder, "live"))
    Session({}).execute(*statements(folder, "replayed"))
    Session({"execution.runtime-mode": "batch"}).execute(*statements(folder, "batch"))
    curves = [drawn(folder / name) for name in ("live", "replayed", "batch")]
    assert curves[0] == curves[1] == curves[2] == expected()
    for points in curves[0].values():
        counts = [points[end] for end in sorted(points)]
        assert counts == sorted(counts)
    for end, total in curves[0][""].items():
        assert total == sum(curves[0][channel].get(end, 0) for channel in "abc")
