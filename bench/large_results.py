"""Results larger than memory, through the client: ``python -m bench.large_results --rows 20000000``.

Writes a Parquet file of so many rows and has ``tidemill run`` print all of them, as a table and as JSON, to
nowhere. Prints, for each format, the time and the most memory of its own that the client's process and its
JVM had, in MiB: pages of files that are mapped are the system's, and given back when it needs them.
``--sort 10``: instead so many GiB of rows of 100 random letters in 64 files are put in order, into nowhere.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tests.runtime.processes import parts_of

_SCRIPT = """SET 'execution.runtime-mode' = 'batch';
CREATE TABLE t (n BIGINT, s STRING) WITH ('connector' = 'filesystem', 'path' = '{0}', 'format' = 'parquet');
SELECT n, s FROM t;
"""
_SORT = """SET 'execution.runtime-mode' = 'batch';
CREATE TABLE t (s STRING) WITH ('connector' = 'filesystem', 'path' = '{0}', 'format' = 'parquet');
CREATE TABLE nowhere (s STRING) WITH ('connector' = 'blackhole');
INSERT INTO nowhere SELECT s FROM t ORDER BY s;
"""
_FILES, _LETTERS = 64, 100
_GROUP = 1_000_000
_SECONDS = 0.5


def written(file: Path, rows: int) -> None:
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    with parquet.ParquetWriter(file, schema) as writer:
        for start in range(0, rows, _GROUP):
            numbers = pa.array(range(start, min(start + _GROUP, rows)), pa.int64())
            writer.write_table(pa.table([numbers, numbers.cast(pa.string())], schema=schema))


def random_text(folder: Path, gib: float) -> None:
    rows = int(gib * (1 << 30) / _LETTERS / _FILES)
    offsets = pa.array(range(0, (rows + 1) * _LETTERS, _LETTERS), pa.int32())
    for number in range(_FILES):
        letters = np.random.default_rng(number).integers(97, 123, rows * _LETTERS, np.uint8)
        text = pa.StringArray.from_buffers(rows, offsets.buffers()[1], pa.py_buffer(letters))
        parquet.write_table(pa.table({"s": text}), folder / f"{number}.parquet", use_dictionary=False)


def measured(script: Path, output: str) -> dict[str, float]:
    command = [sys.executable, "-m", "tidemill.client.main", "run", "--format", output, str(script)]
    begun = time.monotonic()
    peak: dict[str, float] = defaultdict(float)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as client:
        while client.poll() is None:
            for kind, pids in {"client": [client.pid], **parts_of(client.pid)}.items():
                peak[kind] = max(peak[kind], sum(map(_own, pids)))
            time.sleep(_SECONDS)
    if client.returncode:
        raise RuntimeError(f"'{' '.join(command)}' failed")
    return {"seconds": round(time.monotonic() - begun, 1), **{f"{k} MiB": round(v) for k, v in peak.items()}}


def _own(pid: int) -> float:
    """Anonymous pages, in MiB; 0 of a process that has gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(x.split()[1]) / 1024 for x in lines if x.startswith("RssAnon")), 0.0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--sort", type=float, default=0, help="GiB")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "all.sql")
        if given.sort:
            (Path(folder) / "t").mkdir()
            random_text(Path(folder, "t"), given.sort)
            script.write_text(_SORT.format(Path(folder, "t")))
            print(json.dumps({"GiB": given.sort, **measured(script, "table")}), flush=True)
            return
        file = Path(folder, "t.parquet")
        written(file, given.rows)
        script.write_text(_SCRIPT.format(file))
        for output in ("table", "json"):
            print(json.dumps({"rows": given.rows, "format": output, **measured(script, output)}), flush=True)


if __name__ == "__main__":
    main()
