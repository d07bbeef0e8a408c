"""Jobs that run in several ways, their epochs as Spark jobs and in resident workers, over the same input."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from unittest.mock import patch

from tests.runtime.running import Session
from tests.visible import lines
from tidemill.runtime.epoch_parallelism import EpochParallelism
from tidemill.runtime.outputs import Made
from tidemill.runtime.spark.epoch.facts import EpochFacts
from tidemill.runtime.spark.epoch.reads import Reads
from tidemill.runtime.spark.resident import workers
from tidemill.runtime.spark.resident.epochs import ResidentEpochs

ROWS = 60
_STARTS = 1_714_521_600
"""2024-05-01 00:00:00 UTC."""


def make_input(folder: Path, chance: Random, rows: int = ROWS) -> list[str]:
    """Statements for the tables ``a`` and ``b``, whose times are out of order, ``r``, with versions, and
    ``d``, which is looked up for the rows of ``p``; ``ab`` and ``aa`` are unions.
    Files that are there stay."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name in "ab":
        times = sorted(chance.randint(0, rows * 3 // 2) for _ in range(rows))
        texts = [
            f"{_time(max(0, t - late))},{chance.randint(1, 4)},{chance.randint(0, 9)},{n}"
            for n, t in enumerate(times)
            for late in [chance.choice((0, 0, 1, 3, 12))]
        ]
        _write(folder / f"{name}.csv", "\n".join(texts) + "\n")
        made.append(
            f"CREATE TABLE {name} (ts TIMESTAMP(3), k BIGINT, v BIGINT, id BIGINT, "
            "WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) "
            f"WITH ('connector'='filesystem', 'path'='{folder}/{name}.csv', 'format'='csv')"
        )
    changes = [
        {"before": None, "after": {"ts": _time(t), "k": k, "rate": chance.randint(1, 9)}, "op": "c"}
        for t in range(0, 90, 15)
        for k in range(1, 5)
    ]
    _write(folder / "r.json", "".join(f"{json.dumps(change)}\n" for change in changes))
    made.append(
        "CREATE TABLE r (ts TIMESTAMP(3), k BIGINT, rate BIGINT, PRIMARY KEY (k) NOT ENFORCED, "
        "WATERMARK FOR ts AS ts) "
        f"WITH ('connector'='filesystem', 'path'='{folder}/r.json', 'format'='debezium-json')"
    )
    _write(folder / "d.csv", "".join(f"{k},{chance.randint(0, 3)}\n" for k in range(1, 4)))
    made += (
        "CREATE TABLE d (k BIGINT, w BIGINT) "
        f"WITH ('connector'='filesystem', 'path'='{folder}/d.csv', 'format'='csv')",
        "CREATE TABLE p (ts TIMESTAMP(3), k BIGINT, v BIGINT, id BIGINT, pt AS PROCTIME()) "
        f"WITH ('connector'='filesystem', 'path'='{folder}/a.csv', 'format'='csv')",
        "CREATE VIEW ab AS SELECT ts, k, v FROM a UNION ALL SELECT ts, k, v FROM b",
        "CREATE VIEW aa AS SELECT ts, k, v FROM a UNION ALL SELECT ts, v, id FROM a WHERE v > 3",
    )
    return made


def _write(path: Path, text: str) -> None:
    if not path.exists():
        path.write_text(text)


def make_types(folder: Path) -> str:
    """The statement for the table ``types``, with a column of most types, some of them NULL."""
    lines = [
        {
            "b": n % 2 == 0,
            "i": n,
            "f": n / 3,
            "d": f"{2000 + n}-02-{1 + n % 28:02d}",
            "l": f"{1900 + 9 * n}-05-01 00:00:{n:02d}.{n:03d}",
            "m": n * 1.05,
            "z": f"2024-05-01 01:00:{n:02d}.{7 * n:03d}Z",
            "x": "AAEC",
            "o": {"p": n, "q": [str(n), None]},
            "y": [n, None],
        }
        for n in range(40)
    ]
    rows = [{k: v for k, v in line.items() if (n + len(k)) % 7 or k == "i"} for n, line in enumerate(lines)]
    (folder / "types.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return (
        "CREATE TABLE types (b BOOLEAN, i INT, f DOUBLE, d DATE, l TIMESTAMP(3), m DECIMAL(10, 2),"
        " z TIMESTAMP_LTZ(3), x BYTES, o ROW<p INT, q ARRAY<STRING>>, y ARRAY<INT>)"
        f" WITH ('connector'='filesystem', 'path'='{folder}/types.json', 'format'='json')"
    )


def _time(second: int) -> str:
    return f"2024-05-01 00:{second // 60:02d}:{second % 60:02d}"


@dataclass(slots=True)
class Heard:
    """How the epochs of jobs ran, by number, in resident workers or as Spark jobs; what failed in workers."""

    resident: list[int]
    spark: list[int]
    failures: list[str]


@contextmanager
def drawn_partitions(chance: Random) -> Iterator[None]:
    """Each epoch of the jobs that start here has as many as ``chance`` says, and is one task or several."""

    def drawn(parallelism: EpochParallelism, reads: Reads) -> int:
        return chance.choice((1, parallelism.most, 3))

    is_small = property(lambda _: chance.random() < 0.5)
    with (
        patch.object(EpochParallelism, "of_epoch", drawn),
        patch.object(EpochParallelism, "is_small", is_small),
    ):
        yield


@contextmanager
def heard() -> Iterator[Heard]:
    """Jobs that start here wait long for their workers: the machine may be busy."""
    found, plain, failed = Heard([], [], []), ResidentEpochs.run, ResidentEpochs._failed

    def run(
        epochs: ResidentEpochs, facts: EpochFacts, reads: Reads, discard: Callable[[], None]
    ) -> Made | None:
        made = plain(epochs, facts, reads, discard)
        (found.spark if made is None else found.resident).append(facts.epoch)
        return made

    def fail(epochs: ResidentEpochs, error: Exception, epoch: int) -> None:
        found.failures.append(str(error))
        failed(epochs, error, epoch)

    with (
        patch.object(ResidentEpochs, "run", run),
        patch.object(ResidentEpochs, "_failed", fail),
        patch.object(workers, "START_SECONDS", 300.0),
        patch.object(workers, "PAUSE_SECONDS", 0.0),
    ):
        yield found


def sinks(folder: Path, count: int) -> list[str]:
    return [
        f"CREATE TABLE s{i} (x BIGINT, y BIGINT) "
        f"WITH ('connector'='filesystem', 'path'='{folder}/s{i}', 'format'='debezium-json')"
        for i in range(count)
    ]


def inserts(queries: tuple[str, ...]) -> str:
    made = "".join(f"INSERT INTO s{i} {query}; " for i, query in enumerate(queries))
    return f"EXECUTE STATEMENT SET BEGIN {made}END"


def changes(folder: Path, count: int) -> list[list[str]]:
    """The lines of each sink."""
    return [lines(folder / f"s{i}") for i in range(count)]


WAYS = {
    "frames": {"tidemill.epoch.resident": "false", "tidemill.epoch.small-bytes": "0"},
    "one task": {"tidemill.epoch.resident": "false"},
    "resident": {"tidemill.epoch.resident": "true"},
}
"""Of running epochs."""


def options(rows: int, way: str, checkpoint: Path | None = None) -> dict[str, str]:
    made = {"tidemill.epoch.max-rows": str(rows), "parallelism.default": "2", **WAYS[way]}
    return made if checkpoint is None else {**made, "execution.checkpointing.dir": str(checkpoint)}


def ran(session: Session, tables: list[str], folder: Path, queries: tuple[str, ...]) -> list[list[str]]:
    session.execute(*tables, *sinks(folder, len(queries)), inserts(queries))
    return changes(folder, len(queries))
