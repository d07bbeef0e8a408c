"""Runs the job over the same messages twice: alone, and while it is killed with what it depends on.

Messages are produced all the time, kills come until as many have come as were wanted; then the rest of the
messages is sent at once and the job comes to its end. The broker is killed like the job's processes and
started again on its directory after some seconds, which the job has to outlast.
"""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.connectors.kafka import Broker, broker
from tests.connectors.kafka_proof import readers
from tests.connectors.kafka_proof.job import SUMS, Place, make_tables
from tests.connectors.kafka_proof.messages import PARTITIONS, changes, ends
from tests.connectors.kafka_proof.readers import Readers
from tests.runtime.kills import Job, database
from tests.runtime.processes import end, kill, parts_of

WAYS = ("broker", "driver", "worker", "jvm", "broker and driver")
"""In the first four each part dies once."""
_FATAL = ("driver", "jvm", "broker and driver")
_AWAY = (1.0, 6.0)
"""Seconds for which a broker that was killed stays away, from and to; then it starts."""
_OUTLASTED = 20.0
"""Seconds without a broker that no job ends by; on a busy machine a broker takes longer to start."""
_SLOW = 2
"""Messages a second once only the last fifth is left and kills are still to come."""


class Stuck(Exception):
    """The time is over; the stacks of the job's threads."""


class Producing(threading.Thread):
    """Sends messages, ``rate`` a second; the rest at once after ``hurry`` is set."""

    def __init__(self, place: Place, made: list[Any], rate: float) -> None:
        super().__init__(daemon=True)
        self.place, self.made, self.rate = place, made, rate
        self.hurry, self.sent = threading.Event(), 0
        self.left = -1

    def run(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self.place.servers, "enable.idempotence": True, "log_level": 0}
        )
        for number, change in enumerate(self.made):
            topic = f"{self.place.input}-{change.table}"
            producer.produce(topic, change.value, partition=change.partition)
            producer.poll(0)
            self.sent = number + 1
            self.hurry.wait(1 / (self.rate if number < 0.8 * len(self.made) else _SLOW))
        self.left = producer.flush(120)


@dataclass(slots=True)
class Proof:
    """``rounds`` of the job were run; ``killed``: how often in which way; ``refused``: what a job said that
    ended though neither its driver nor its JVM was killed; ``differences`` of what was written, and of what
    was seen meanwhile. ``until``: when the time is over."""

    root: Path
    broker: Broker
    database: str
    chance: random.Random
    until: float
    messages: int
    rate: float = 20.0
    killed: Counter[str] = field(default_factory=Counter)
    looks: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    epochs: int = 0
    refused: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    def run(self, kills: int, per_round: int) -> None:
        """Stuck if it takes longer than until ``until``."""
        made = changes(self.messages, self.chance.randrange(1000))
        expected = self._round("alone", made, [])
        while self.killed.total() < kills and not self.refused:
            self.rounds += 1
            ways = self._ways(min(per_round, kills - self.killed.total()))
            found = self._round(f"round_{self.rounds}", made, ways)
            for sink, rows in () if self.refused else expected.items():
                if found[sink] != rows:
                    self.differences.append(f"round {self.rounds}, {sink}: {_difference(found[sink], rows)}")
            _say(f"{self.killed.total()} kills, {self.epochs} epochs, {len(self.differences)} differences")

    def _ways(self, count: int) -> list[str]:
        """Each once before one comes again."""
        found: list[str] = []
        while len(found) < count:
            most = WAYS[: max(count - len(found), len(WAYS) - 1)]
            found += self.chance.sample(most, len(most))
        return found[:count]

    def _round(self, name: str, made: list[Any], ways: list[str]) -> dict[str, Any]:
        """What the sinks have in the end."""
        place = self._place(name, made)
        producing = Producing(place, made, self.rate)
        job = Job(Path(place.folder), ("tests.connectors.kafka_proof.job", place.folder))
        if not ways:
            producing.hurry.set()
        producing.start()
        with Readers(place) as seen:
            try:
                self._live(job, producing, ways)
            finally:
                producing.hurry.set()
                job.end()
        self.looks += seen.looks
        self.differences += [f"{name}: {part}" for part in seen.parts[:20]]
        self.epochs += job.epochs
        producing.join()
        assert producing.left == 0, producing.left
        return {} if self.refused else self._results(place)

    def _place(self, name: str, made: list[Any]) -> Place:
        folder = self.root / name
        folder.mkdir()
        place = Place(
            name=name,
            folder=str(folder),
            servers=self.broker.servers,
            database=self.database,
            input=name,
            ends={t: {str(p): end for p, end in found.items()} for t, found in ends(made).items()},
            rows=self.messages // 10,
        )
        place.save()
        for table, partitions in PARTITIONS.items():
            self.broker.topic(partitions, f"{name}-{table}")
        for sums in SUMS:
            self.broker.topic(1, place.sink(sums))
        make_tables(place)
        return place

    def _live(self, job: Job, producing: Producing, ways: list[str]) -> None:
        """From the job's beginning to its end, through its deaths."""
        left = list(ways)
        while True:
            job.start()
            _say(f"started, {producing.sent} messages are sent, {job.epochs} epochs done")
            while not job.is_over:
                self._check(job)
                if not left:
                    producing.hurry.set()
                    job.wait(1)
                elif self._disturb(job, left[0]):
                    left.pop(0)
            if job.process.returncode == 0 and not job.struck:
                return
            if not job.struck:
                self.refused.append(f"after {dict(self.killed)}:\n{job.errors()}")
                return

    def _disturb(self, job: Job, way: str) -> bool:
        """Kills at some moment: mostly while epochs are run, else while the job starts; whether it has."""
        if self.chance.random() < 0.8:
            while not job.is_over and not job.wait(1):
                self._check(job)
        job.wait(self.chance.uniform(0.0, 2.5))
        if job.is_over:
            return False
        parts = parts_of(job.process.pid)
        if way in ("worker", "jvm") and not (parts[way] and kill(self.chance.choice(parts[way]))):
            return False
        if way.startswith("broker"):
            self.broker.kill()
        if way.endswith("driver"):
            kill(job.process.pid, signal.SIGKILL)
        self.killed[way] += 1
        _say(f"killed: {way}")
        if way in _FATAL:
            job.struck = True
            job.process.wait(60)
            end(parts)
        if way.startswith("broker"):
            back = threading.Thread(target=self._start_broker, args=(job, self.chance.uniform(*_AWAY)))
            back.start()
            if way not in _FATAL:
                back.join()
        return True

    def _start_broker(self, job: Job, seconds: float) -> None:
        killed = time.monotonic()
        time.sleep(seconds)
        self.broker.start()
        away = time.monotonic() - killed
        _say(f"the broker is back after {away:.0f} s")
        job.struck = job.struck or away > _OUTLASTED

    def _check(self, job: Job) -> None:
        if time.monotonic() > self.until:
            raise Stuck(f"after {dict(self.killed)} the job does not end:\n{job.end()}")

    def _results(self, place: Place) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for sums in SUMS:
            sent = readers.topic(self.broker, place, sums)
            found[f"topic {sums}"] = sent.rows
            found[f"table {sums}"] = readers.table(place, sums)
            found[f"delta {sums}"] = readers.delta(place, sums)
            if sums == "windows":
                # A window is shown once: whatever is sent again is seen here.
                twice = [key for key, count in sent.sent.items() if count > 1]
                self.differences += [f"{place.name}: topic {sums} has {key} more than once" for key in twice]
        for sink, rows in found.items():
            parts = readers.missing(rows)
            self.differences += [f"{place.name} in the end: {sink}: {part}" for part in parts]
        return found


def prove(root: Path, *, kills: int, seed: int, minutes: float, url: str = "", messages: int = 2000) -> Proof:
    """On a broker of its own, and a database of its own unless ``url`` names one. Stuck after ``minutes``."""
    with broker(root / "kafka") as running, database(url, str(root)) as results:
        until = time.monotonic() + 60 * minutes
        proof = Proof(root, running, results, random.Random(seed), until, messages)
        proof.run(kills, per_round=8)
    return proof


def _difference(found: readers.Sums, expected: readers.Sums) -> str:
    keys = sorted(k for k in {*found, *expected} if found.get(k) != expected.get(k))
    told = [f"{k}: {found.get(k)} instead of {expected.get(k)}" for k in keys[:5]]
    return f"{len(keys)} of {len(expected)} rows, such as {'; '.join(told)}"


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
