"""A job that kills its own processes: ``python -m tests.runtime.spark.resident.victim FOLDER SEED``.

Each life draws whether its epochs may run in resident workers; so does each of its epochs. Then it draws one
deed: to kill the driver at a step of the commit protocol or at some moment of an epoch, to kill Spark's JVM,
or to kill resident workers time and again. Each kill is a line in ``FOLDER/kills``. Without a SEED nothing is
killed, and all epochs are Spark jobs.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.runtime.processes import kill, parts_of
from tests.runtime.running import Session
from tests.runtime.spark.resident.jobs import inserts, make_input, options, sinks
from tidemill.runtime.spark.resident import epochs, workers
from tidemill.runtime.spark.resident.workers import ResidentWorkers

ROWS, ROWS_OF_EPOCH = 120, 5
STEPS = ("planned", "ran", "committed", "published")
QUERIES = (
    "SELECT n AS x, COUNT(*) AS y FROM (SELECT k, v, COUNT(*) AS n FROM a GROUP BY k, v) GROUP BY n",
    "SELECT k AS x, SUM(v) AS y FROM TABLE(TUMBLE(TABLE ab, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
    " GROUP BY window_start, window_end, k",
    "SELECT a.id AS x, b.id AS y FROM a JOIN b ON a.v = b.v"
    " AND a.ts BETWEEN b.ts - INTERVAL '5' SECOND AND b.ts",
    "SELECT id AS x, v AS y FROM a UNION ALL SELECT id, k FROM b",
)
_LONGEST = 0.3
"""Seconds between the plan of an epoch and a kill."""


@dataclass(slots=True)
class Killer:
    """``step``, ``time``: kills itself when the step is reached for the time-th time."""

    folder: Path
    chance: Random
    deed: str
    step: str = ""
    time: int = 0
    _seen: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reached(self, step: str) -> None:
        if step == "planned":
            epochs.LARGEST = self.chance.choice((1 << 30, 1 << 30, 0))
        self._seen += step == self.step
        if step != self.step or (self.deed != "worker" and self._seen < self.time):
            return
        if self.deed == "step":
            self._note(f"driver {step}")
            os.kill(os.getpid(), signal.SIGKILL)
        elif self._seen % self.time == 0:
            threading.Timer(self.chance.uniform(0.0, _LONGEST), self._strike).start()

    def _strike(self) -> None:
        if self.deed == "driver":
            self._note(self.deed)
            os.kill(os.getpid(), signal.SIGKILL)
        found = _resident() if self.deed == "worker" else tuple(parts_of(os.getpid())["jvm"])
        if found and kill(self.chance.choice(found)):
            self._note(self.deed)

    def _note(self, what: str) -> None:
        with self._lock, (self.folder / "kills").open("a") as file:
            file.write(f"{what}\n")


def _resident() -> tuple[int, ...]:
    made: list[ResidentWorkers] = list(workers._OF.values())
    return made[0].processes if made else ()


def main() -> None:
    folder, chance = Path(sys.argv[1]), Random(sys.argv[2] if len(sys.argv) > 2 else 0)
    killer = Killer(folder, chance, "")
    if len(sys.argv) > 2:
        deed = chance.choice(("step", "driver", "worker", "worker", "jvm"))
        step = chance.choice(STEPS) if deed == "step" else "planned"
        killer = Killer(folder, chance, deed, step, chance.randint(2, 9))
        workers.PAUSE_SECONDS = 0.0
    way = "frames" if len(sys.argv) == 2 else chance.choice(("frames", "one task", *["resident"] * 4))
    made = options(ROWS_OF_EPOCH, "resident" if killer.deed == "worker" else way, folder / "checkpoint")
    session = Session(made, killer.reached if len(sys.argv) > 2 else lambda _: None)
    session.environment.context.on_progress = lambda progress: print("epoch", progress.epoch, flush=True)
    tables = make_input(folder / "input", Random(1), ROWS)
    session.execute(*tables, *sinks(folder, len(QUERIES)), inserts(QUERIES))


if __name__ == "__main__":
    main()
