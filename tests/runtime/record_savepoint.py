"""Records a savepoint for ``recorded``: ``python -m tests.runtime.record_savepoint FOLDER VALUES``.

Before a format changes, a savepoint of the format is recorded, so that later versions can be tested with it.
The job reads no files, so nothing in the savepoint names a place. The job stops in the middle of its input,
with VALUES distinct values in state. Large runs are packed: with ``PACKED`` values one run is.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tidemill.session.environment import TableEnvironment

ROWS, PACKED = 80_000, 17_000
NUMBERS = f"""CREATE TABLE g (id INT, ts AS TO_TIMESTAMP_LTZ(id * 100, 3), WATERMARK FOR ts AS ts) WITH (
'connector'='datagen', 'rows-per-second'='20000', 'fields.id.kind'='sequence', 'fields.id.start'='1',
'fields.id.end'='{ROWS}')"""
SINKS = {
    "sums": "channel STRING, n BIGINT, ids BIGINT, total BIGINT, PRIMARY KEY (channel) NOT ENFORCED",
    "hours": "ends TIMESTAMP(3), n BIGINT, top INT",
    "pairs": "k INT, n BIGINT, m BIGINT, PRIMARY KEY (k) NOT ENFORCED",
    "tops": "k INT, r BIGINT, id INT, PRIMARY KEY (k, r) NOT ENFORCED",
    "steps": "begins TIMESTAMP(3), ends TIMESTAMP(3), ids BIGINT",
}
CHANNEL = "CONCAT('a channel with a long name ', CAST(MOD(id, 5) AS STRING))"


def statement_set(values: int, *, steps: bool = True) -> str:
    """``steps``: with a CUMULATE window, which savepoints before manifests of version 5 lack."""
    inserts = [
        f"INSERT INTO sums SELECT {CHANNEL} AS channel, COUNT(*) AS n, "
        f"COUNT(DISTINCT MOD(id, {values})) AS ids, SUM(CAST(id AS BIGINT)) AS total "
        f"FROM g GROUP BY {CHANNEL}",
        "INSERT INTO hours SELECT window_end, COUNT(*) AS n, MAX(id) AS top "
        "FROM TABLE(TUMBLE(TABLE g, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start, window_end",
        "INSERT INTO pairs SELECT a.k, a.n, b.m FROM (SELECT MOD(id, 7) AS k, COUNT(*) AS n FROM g "
        "GROUP BY MOD(id, 7)) AS a JOIN (SELECT MOD(id, 9) AS k, MAX(CAST(id AS BIGINT)) AS m FROM g "
        "GROUP BY MOD(id, 9)) AS b ON a.k = b.k",
        "INSERT INTO tops SELECT k, r, id FROM (SELECT *, "
        "ROW_NUMBER() OVER (PARTITION BY k ORDER BY id DESC) AS r "
        "FROM (SELECT MOD(id, 3) AS k, id FROM g)) WHERE r <= 2",
    ]
    if steps:
        inserts.append(
            f"INSERT INTO steps SELECT window_start, window_end, COUNT(DISTINCT MOD(id, {values})) AS ids "
            "FROM TABLE(CUMULATE(TABLE g, DESCRIPTOR(ts), INTERVAL '30' MINUTE, INTERVAL '1' HOUR)) "
            "GROUP BY window_start, window_end"
        )
    return f"EXECUTE STATEMENT SET BEGIN {'; '.join(inserts)}; END"


def main(folder: str, values: str) -> None:
    job_folder = Path(folder + "-job")
    made = TableEnvironment.create(
        {
            "parallelism.default": "1",
            "table.local-time-zone": "UTC",
            "tidemill.epoch.max-rows": str(PACKED),
            "execution.checkpointing.dir": str(job_folder),
        }
    )
    tables = (
        f"CREATE TABLE {name} ({columns}) WITH ('connector'='blackhole')" for name, columns in SINKS.items()
    )
    for text in (NUMBERS, *tables):
        made.execute_sql(text)
    job = made.execute_sql(statement_set(int(values))).job
    assert job is not None
    while rows_read(job_folder) < PACKED:
        time.sleep(0.02)
    Path(job.stop_with_savepoint(f"{folder}-savepoints")).rename(folder)
    assert rows_read(Path(folder)) < ROWS


def rows_read(place: Path) -> int:
    """By the last epoch of the job or savepoint."""
    commits = (json.loads(path.read_bytes()) for path in place.glob("epochs/*.commit.json"))
    return max((offset["row"] for commit in commits for offset in commit["offsets"].values()), default=0)


if __name__ == "__main__":
    main(*sys.argv[1:])
