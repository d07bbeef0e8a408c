"""A day's curve, a point a minute, and a process that draws it until it is killed.

``python -m tests.runtime.curve FOLDER SINK MODE STEP TIME``: at the TIME-th time that STEP is reached it
kills itself with SIGKILL. The curve counts users in two levels (by bucket, then by channel and over all)."""

from __future__ import annotations

import datetime as dt
import random
import sys
from pathlib import Path

from tests.runtime.running import Session
from tests.runtime.victim import kill_self

EVENTS = 400
DAY = dt.datetime(2024, 5, 1)
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


def live(folder: Path) -> dict[str, str]:
    """Options of a job in epochs that can be resumed."""
    return {"tidemill.epoch.max-rows": "67", "execution.checkpointing.dir": str(folder / "checkpoint")}


def main() -> None:
    folder, out, mode, step, time = Path(sys.argv[1]), *sys.argv[2:6]
    options = live(folder) if mode == "live" else {"execution.runtime-mode": mode}
    Session({**options, "parallelism.default": "2"}, kill_self(step, int(time))).execute(
        *statements(folder, out)
    )


if __name__ == "__main__":
    main()
