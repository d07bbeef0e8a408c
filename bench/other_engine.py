"""The aggregations over k in Pathway, an engine of incremental data flows from PyPI, beside Tidemill.

``python -m bench.other_engine PYTHON [--rows N] [--repeat N]``. ``PYTHON`` is the interpreter of an
environment with ``pip install pathway``. Both sides read the same rows and drop their results. Pathway gets
two threads, reads its input as one static batch and stores nothing; Tidemill writes checkpoints. Prints the
best wall seconds of each side.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from bench.cases import cases
from bench.compare import run_tidemill

_PROGRAM = """
import json, sys, time
import pathway as pw

class Row(pw.Schema):
    k: int
    v: int
    w: float

rows = pw.io.csv.read(sys.argv[1], schema=Row, mode="static")
totals = rows.groupby(rows.k).reduce(
    rows.k, c=pw.reducers.count(), s=pw.reducers.sum(rows.v), m=pw.reducers.max(rows.w))
pw.io.null.write(totals)
begun = time.perf_counter()
pw.run(monitoring_level=pw.MonitoringLevel.NONE)
print(json.dumps(time.perf_counter() - begun))
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "tidemill-bench")
    args = parser.parse_args()
    for case in cases(args.rows):
        if case.structured_streaming is None:
            continue
        ours = run_tidemill(case, case.script(args.data, args.repeat), args.repeat).seconds
        theirs = run_pathway(args.python, case.structured_streaming.make(args.data), args.repeat)
        print(f"{case.title}: Tidemill {ours:.1f} s, Pathway {theirs:.1f} s, ratio {theirs / ours:.2f}")


def run_pathway(python: str, path: Path, repeat: int) -> float:
    """Best seconds. Its CSV reader wants names in the first line: it reads a copy that has them."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "rows.csv"
        with open(path, "rb") as rows, open(copy, "wb") as named:
            named.write(b"k,v,w\n")
            shutil.copyfileobj(rows, named)
        command = [python, "-c", _PROGRAM, str(copy)]
        environment = {**os.environ, "PATHWAY_THREADS": "2"}
        return min(
            json.loads(
                subprocess.run(
                    command, env=environment, cwd=folder, capture_output=True, text=True, check=True
                ).stdout.splitlines()[-1]
            )
            for _ in range(repeat)
        )


if __name__ == "__main__":
    main()
