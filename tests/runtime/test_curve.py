"""A day's curve, a point a minute: killed on its way, replayed from the start, and in batch it is one curve.

It never dips, and its parts add up (see ``curve``)."""

from __future__ import annotations

import datetime as dt
import os
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.curve import DAY, events, live, statements
from tests.runtime.running import Crash, Session, crash_at
from tests.visible import lines

pytestmark = pytest.mark.thorough

Curve = dict[str, dict[str, int]]
"""Per channel ('' is all of them) and minute the users so far."""


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
    for step, time in (("ran", 2), ("committed", 1), ("published", 2)):
        with pytest.raises(Crash):
            Session(live(folder), crash_at(step, time)).execute(*statements(folder, "live"))
    Session(live(folder)).execute(*statements(folder, "live"))
    Session({}).execute(*statements(folder, "replayed"))
    Session({"execution.runtime-mode": "batch"}).execute(*statements(folder, "batch"))
    _are_one(folder)


@pytest.mark.timeout(900)
def test_processes_that_are_killed_draw_it_whatever_their_hashes(folder: Path) -> None:
    """Every process hashes texts in its own way: what one has written another reads."""
    for seed, (step, time) in enumerate((("ran", 2), ("committed", 1), ("published", 1))):
        assert _process(folder, seed, "live", "live", step, time) == -signal.SIGKILL
    for seed, (out, mode) in enumerate(
        (("live", "live"), ("replayed", "streaming"), ("batch", "batch")), 1_000
    ):
        assert _process(folder, seed, out, mode) == 0
    _are_one(folder)


def _process(folder: Path, seed: int, out: str, mode: str, step: str = "never", time: int = 0) -> int:
    command = [sys.executable, "-m", "tests.runtime.curve", str(folder), out, mode, step, str(time)]
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    repository = Path(__file__).parents[2]
    run = subprocess.run(
        command, cwd=repository, env=environment, check=False, capture_output=True, timeout=400
    )
    return run.returncode


def _are_one(folder: Path) -> None:
    """The curves are what they should be, never go down, and the parts add up to the total at every point."""
    curves = [drawn(folder / name) for name in ("live", "replayed", "batch")]
    assert curves[0] == curves[1] == curves[2] == expected()
    for points in curves[0].values():
        counts = [points[end] for end in sorted(points)]
        assert counts == sorted(counts)
    for end, total in curves[0][""].items():
        assert total == sum(curves[0][channel].get(end, 0) for channel in "abc")
