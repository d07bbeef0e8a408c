"""Kafka beside real Flink and its Kafka connector: ``python -m bench.kafka [PART ...] [--rows 10000000]``.

A broker of its own runs meanwhile (Maven brings its classes, and Flink's connector, the first time). Parts:

- ``read``: rows per processor second that a task reads, without Spark but with a worker's settings: one
  partition of raw values, and of JSON as columns.
- ``aggregate``: ``--rows`` JSON rows in ``--partitions`` partitions, by ``--keys`` keys, from the topic to
  nowhere; seconds and processor seconds of the best of ``--repeat`` runs, Flink with heap state. Both read
  some rows first to warm up.
- ``latency``: a job copies the rows of a topic, exactly once, into another one, while ``--rate`` rows a
  second come for ``--seconds``; how long a row takes from the call of the producer until a
  ``read_committed`` reader has it. Tidemill as Spark jobs and in resident workers, Flink with a checkpoint
  each second.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.compare import ROOT
from bench.memory import processor_seconds
from bench.processor_time import flink, flink_answer
from tests.connectors.kafka import BOUNDED, Broker, broker, have_classes
from tests.connectors.sources import source, table
from tests.flink import KAFKA, MissingError, flink_with
from tidemill.connectors.kafka.offsets import KafkaRange
from tidemill.connectors.kafka.source import KafkaSource
from tidemill.runtime.spark.worker_daemon import NEW_OBJECTS
from tidemill.session.environment import TableEnvironment
from tidemill.types import logical as t

COLUMNS = "k BIGINT, v BIGINT, w DOUBLE"
WARM_UP = 20_000
_BLOCK = 100_000
_SETTLING = 10.0
"""Seconds from the first row for which latencies do not count."""
_PATIENCE = 240.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all of them if none is named")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--rate", type=int, default=10_000, help="rows a second, of the part latency")
    parser.add_argument("--seconds", type=float, default=60, help="of rows that come, of the part latency")
    parser.add_argument("--no-flink", action="store_true")
    given = parser.parse_args()
    if not have_classes():
        sys.exit("Kafka's classes cannot be had from Maven (mvn, Maven Central).")
    if not given.no_flink:
        try:
            os.environ |= flink_with("kafka", [KAFKA])
        except MissingError as e:
            sys.exit(f"No Flink with Kafka: {e}; --no-flink leaves it out.")
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-kafka-") as folder,
        broker(Path(folder, "b")) as running,
    ):
        for part in given.parts or PARTS:
            PARTS[part](running, Path(folder), given)


# -- input ----------------------------------------------------------------------------------------


def json_rows(rows: int, keys: int) -> Iterator[str]:
    chance = np.random.default_rng(7)
    for start in range(0, rows, _BLOCK):
        count = min(_BLOCK, rows - start)
        ks, vs = chance.integers(0, keys, count).tolist(), chance.integers(0, 1000, count).tolist()
        yield from (f'{{"k":{k},"v":{v},"w":{v / 8}}}' for k, v in zip(ks, vs, strict=True))


def filled(running: Broker, rows: int, keys: int, partitions: int) -> str:
    """The name of a new topic; the rows are in its partitions in turn."""
    topic = running.topic(partitions)
    settings = {"linger.ms": 50, "batch.size": 1_000_000, "queue.buffering.max.messages": 500_000}
    producer = Producer({"bootstrap.servers": running.servers, "log_level": 0, **settings})
    for number, value in enumerate(json_rows(rows, keys)):
        while True:
            try:
                producer.produce(topic, value, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(_PATIENCE):
        sys.exit("the broker does not take the rows")
    return topic


# -- the parts ------------------------------------------------------------------------------------


def read(running: Broker, folder: Path, given: argparse.Namespace) -> None:
    rows = min(given.rows, 2_000_000)
    topic = filled(running, rows, given.keys, 1)
    shapes = {
        "raw": ({"v": t.BYTES}, {"value.format": "raw"}),
        "json": ({"k": t.BIGINT, "v": t.BIGINT, "w": t.DOUBLE}, {"value.format": "json"}),
    }
    for name, (columns, how) in shapes.items():
        declared = table(columns, running.options({"topic": topic, **BOUNDED, **how}))
        made = source(declared, streaming=True)
        assert isinstance(made, KafkaSource)
        whole = KafkaRange(topic=topic, partition=0, start=0, end=rows, number=0)
        rates = []
        gc.set_threshold(NEW_OBJECTS)
        for _ in range(given.repeat):
            begun, found = time.process_time(), 0
            for batch in made.reader.read([whole]):
                found += batch.num_rows
            rates.append(found / (time.process_time() - begun))
            assert found == rows
        print(f"read, {name}: {max(rates) / 1e3:,.0f} thousand rows per processor second", flush=True)


def aggregate(running: Broker, folder: Path, given: argparse.Namespace) -> None:
    topics = {
        "few": filled(running, WARM_UP, given.keys, given.partitions),
        "many": filled(running, given.rows, given.keys, given.partitions),
    }
    tables = [running.ddl(name, COLUMNS, {"topic": topic, **BOUNDED}) for name, topic in topics.items()]
    nowhere = "CREATE TABLE snk (k BIGINT, c BIGINT, s BIGINT, m DOUBLE) WITH ('connector' = 'blackhole')"
    query = "INSERT INTO snk SELECT k, COUNT(*), SUM(v), MAX(w) FROM {} GROUP BY k"
    runs = [query.format("few"), *[query.format("many")] * given.repeat]
    statements = [*tables, nowhere, *runs]
    done = subprocess.run(
        [sys.executable, "-m", "bench.submit"],
        input=json.dumps(statements),
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        check=True,
    )
    told = json.loads(done.stdout.strip().splitlines()[-1])
    ours = min(told["seconds"][-given.repeat :]), min(told["processor"][-given.repeat :])
    what = f"aggregate, {given.rows:,} rows, {given.keys:,} keys, {given.partitions} partitions"
    print(f"{what}: Tidemill {ours[0]:.1f} s, {ours[1]:.1f} s of processors", flush=True)
    if given.no_flink:
        return
    setup = {**_SETUP, "execution.checkpointing.dir": f"file://{folder}/aggregate"}
    with flink(setup) as process:
        _flink_insert(process, [*tables, nowhere, runs[0]])
        found = [_flink_insert(process, [*tables, nowhere, runs[1]]) for _ in range(given.repeat)]
    theirs = min(s for s, _ in found), min(p for _, p in found)
    print(f"{what}: Flink {theirs[0]:.1f} s, {theirs[1]:.1f} s of processors", flush=True)
    print(
        f"{what}: {theirs[0] / ours[0]:.2f} times as fast, {theirs[1] / ours[1]:.2f} times less", flush=True
    )


_SETUP = {
    "state.backend.type": "hashmap",
    "execution.checkpointing.interval": "5s",
    "parallelism.default": "2",
    "taskmanager.memory.managed.size": "1g",
}


def _flink_insert(process: subprocess.Popen[str], statements: Iterable[str]) -> tuple[float, float]:
    """Seconds of the last statement, and of processors of all."""
    used = processor_seconds(process.pid)
    answer = flink_answer(process, ";\n".join(statements) + ";\n", 3600)
    if not answer["ok"]:
        sys.exit(f"Flink failed: {answer['statements'][-1]}")
    return answer["statements"][-1]["elapsed_ms"] / 1000, processor_seconds(process.pid) - used


def latency(running: Broker, folder: Path, given: argparse.Namespace) -> None:
    for resident in (False, True):
        name = f"Tidemill, {'resident workers' if resident else 'Spark jobs'}"
        _report(name, running, given, partial(tidemill_runs, folder, resident))
    if not given.no_flink:
        _report("Flink", running, given, partial(flink_runs, folder))


Runs = Callable[[list[str]], AbstractContextManager[None]]
"""A job of these statements, which runs while the context is open."""


def _report(name: str, running: Broker, given: argparse.Namespace, runs: Runs) -> None:
    """Starts a job by its statements, sends, and says what the reader has seen."""
    into, out = running.topic(given.partitions), running.topic(given.partitions)
    earliest = {"scan.startup.mode": "earliest-offset"}
    exactly = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": out}
    # Flink's default is longer than a broker allows.
    exactly |= {"properties.transaction.timeout.ms": "600000"}
    script = [
        running.ddl("src", "id BIGINT, sent DOUBLE", {"topic": into, **earliest}),
        running.ddl("snk", "id BIGINT, sent DOUBLE", {"topic": out, **exactly}),
        "INSERT INTO snk SELECT id, sent FROM src",
    ]
    seen = Seen(running, out, given.partitions)
    with runs(script):
        send(running, into, given.partitions, 1, 1)
        seen.wait(1)  # the job runs
        wanted = int(given.rate * (given.seconds + _SETTLING))
        begun = time.time()
        send(running, into, given.partitions, given.rate, wanted)
        seen.wait(1 + wanted)
    seen.close()
    late = sorted(took for sent, took in seen.latencies if sent >= begun + _SETTLING)
    hundredths = statistics.quantiles(late, n=100)
    print(
        f"latency, {given.rate:,} rows/s, {name}: {len(late):,} rows: median {hundredths[49]:.3f} s,"
        f" 99th percentile {hundredths[98]:.3f} s",
        flush=True,
    )


def send(running: Broker, topic: str, partitions: int, rate: int, count: int) -> None:
    """Each row at its time, in steps of 10 ms; each has the time of its own call."""
    settings = {"linger.ms": 1, "queue.buffering.max.messages": max(count, 1000)}
    producer = Producer({"bootstrap.servers": running.servers, "log_level": 0, **settings})
    begun = time.time()
    for number in range(count):
        if number % max(rate // 100, 1) == 0:
            producer.poll(0)
            time.sleep(max(begun + number / rate - time.time(), 0))
        value = f'{{"id":{number},"sent":{time.time():.6f}}}'
        producer.produce(topic, value, partition=number % partitions)
    producer.flush(_PATIENCE)


class Seen:
    """A ``read_committed`` reader of ``topic`` in a thread. ``latencies``: when each row was sent, and the
    seconds until the reader had it."""

    def __init__(self, running: Broker, topic: str, partitions: int) -> None:
        settings = {"group.id": "bench", "isolation.level": "read_committed", "enable.auto.commit": False}
        more = {"fetch.wait.max.ms": 10, "log_level": 0}
        self._consumer = Consumer({"bootstrap.servers": running.servers, **settings, **more})
        self._consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
        self.latencies: list[tuple[float, float]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            messages = self._consumer.consume(10_000, timeout=0.005)
            now = time.time()
            for message in messages:
                if message.error() is None:
                    sent = float(json.loads(message.value() or b"")["sent"])
                    self.latencies.append((sent, now - sent))

    def wait(self, count: int) -> None:
        deadline = time.monotonic() + _PATIENCE
        while len(self.latencies) < count:
            if time.monotonic() > deadline:
                sys.exit(f"the reader has {len(self.latencies):,} of {count:,} rows")
            time.sleep(0.05)

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._consumer.close()


@contextmanager
def tidemill_runs(folder: Path, resident: bool, script: list[str]) -> Iterator[None]:
    options = {
        "table.exec.mini-batch.allow-latency": "0 ms",
        "tidemill.epoch.resident": str(resident).lower(),
        "execution.checkpointing.dir": f"{folder}/checkpoint-{resident}",
    }
    environment = TableEnvironment.create(options)
    results = [environment.execute_sql(statement) for statement in script]
    job = results[-1].job
    assert job is not None
    try:
        yield
    finally:
        job.cancel()


@contextmanager
def flink_runs(folder: Path, script: list[str]) -> Iterator[None]:
    """The job is ended with its process: the oracle cancels it only after a time."""
    setup = {**_SETUP, "execution.checkpointing.interval": "1s"}
    with flink({**setup, "execution.checkpointing.dir": f"file://{folder}/latency"}) as process:

        def ask() -> None:
            with suppress(json.JSONDecodeError):  # it was killed
                answer = flink_answer(process, ";\n".join(script) + ";\n", 3600)
                print(f"Flink's job has ended: {answer['statements'][-1]}", file=sys.stderr)

        threading.Thread(target=ask, daemon=True).start()
        try:
            yield
        finally:
            process.kill()


Part = Callable[[Broker, Path, argparse.Namespace], None]
PARTS: dict[str, Part] = {"read": read, "aggregate": aggregate, "latency": latency}


if __name__ == "__main__":
    main()
