"""Results larger than memory, through the client: ``python -m bench.large_results --rows 20000000``.

Writes a Parquet file of so many rows and has ``tidemill run`` print all of them, as a table and as JSON, to
nowhere. Prints, for each format, the time and the most memory of its own that the client's process and its
JVM had, in MiB: pages of files that are mapped are the system's, and given back when it needs them.
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

import pyarrow as pa
from pyarrow import parquet

from tests.runtime.processes import parts_of

_SCRIPT = """SET 'execution.runtime-mode' = 'batch';
CREATE TABLE t (n BIGINT, s STRING) WITH ('connector' = 'filesystem', 'path' = '{0}', 'format' = 'parquet');
SELECT n, s FROM t;
"""
_GROUP = 1_000_000
_SECONDS = 0.5


def written(file: Path, rows: int) -> None:
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    with parquet.ParquetWriter(file, schema) as writer:
        for start in range(0, rows, _GROUP):
            numbers = pa.array(range(start, min(start + _GROUP, rows)), pa.int64())
            writer.write_table(pa.table([numbers, numbers.cast(pa.string())], schema=schema))


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
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        file, script = Path(folder, "t.parquet"), Path(folder, "all.sql")
        written(file, rows)
        script.write_text(_SCRIPT.format(file))
        for output in ("table", "json"):
            print(json.dumps({"rows": rows, "format": output, **measured(script, output)}), flush=True)


if __name__ == "__main__":
    main()
