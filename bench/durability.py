"""What keeping promises costs: the seconds that checksums and fsync take, in the driver and in all workers.

``python -m bench.durability [--rows N] [--case NAME]`` runs the cases of ``bench.compare`` and prints a row
for each: seconds of the INSERT, of checksums, of fsync, and both as a share of the run. A worker that waits
for its disk holds one of two cores: seconds count half. Names that bear an attempt cost the making of a text.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.cases import cases
from bench.durability_times import FOLDER, install, spent
from tidemill.session.environment import TableEnvironment

_CORES = 2
_WORKERS = "bench.durability_times"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--case", action="append")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "tidemill-bench")
    parser.add_argument("--inside", action="store_true", help="run the statements of standard input")
    given = parser.parse_args()
    if given.inside:
        print(json.dumps(_run(json.load(sys.stdin))))
        return
    print("| case | s | checksums s | fsync s | share |")
    print("|---|---|---|---|---|")
    for case in cases(given.rows):
        if not given.case or case.name in given.case:
            seconds, checksums, fsync = _measured(case.script(given.data, 1))
            share = (checksums + fsync) / _CORES / seconds
            print(
                f"| {case.title} | {seconds:.1f} | {checksums:.3f} | {fsync:.3f} | {share:.2%} |", flush=True
            )


def _measured(statements: list[str]) -> list[float]:
    with tempfile.TemporaryDirectory() as times:
        done = subprocess.run(
            [sys.executable, "-m", "bench.durability", "--inside"],
            input=json.dumps(statements),
            env=os.environ | {FOLDER: times},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    measured: list[float] = json.loads(done.stdout.strip().splitlines()[-1])
    return measured


def _run(statements: list[str]) -> list[float]:
    """Of the last statement: its seconds, those of checksums, those of fsync."""
    install()
    times = Path(os.environ[FOLDER])
    with tempfile.TemporaryDirectory() as folder:
        environment = TableEnvironment.create(
            {"execution.checkpointing.dir": folder, "spark.python.daemon.module": _WORKERS}
        )
        for statement in statements[:-1]:
            environment.execute_sql(statement).wait()
        before, begun = spent(times), time.perf_counter()
        environment.execute_sql(statements[-1]).wait()
        seconds, after = time.perf_counter() - begun, spent(times)
    return [seconds, after[0] - before[0], after[1] - before[1]]


if __name__ == "__main__":
    main()
