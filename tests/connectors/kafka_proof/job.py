"""The job of the proof, in a process of its own: ``python -m tests.connectors.kafka_proof.job FOLDER``.

Changes of two tables from Kafka go through two joins (one by time, under windows, one as rows are now) into
sums, and these into topics by key, tables of a database and Delta tables, in one statement set. Each sum has
a row for all regions: a reader who sees a part of an epoch finds that it is not the sum of the others.
``FOLDER/job.json`` says where everything is. Says a line for every epoch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.connectors.kafka_proof.messages import LATENESS
from tests.runtime.databases import jdbc_table, query
from tests.runtime.running import Session

SUMS = {"windows": "w STRING, r STRING", "totals": "r STRING"}
"""Both have sums by their key, whose last column is the region."""
ALL = "all"
_MEASURES = "n BIGINT, s BIGINT"
_JOINS = """
CREATE VIEW sold AS SELECT o.amount, o.`at`, a.region
  FROM orders AS o JOIN accounts FOR SYSTEM_TIME AS OF o.`at` AS a ON o.account = a.id;
CREATE VIEW sold_all AS
  SELECT region AS r, amount, `at` FROM sold UNION ALL SELECT 'all', amount, `at` FROM sold;
CREATE VIEW windows AS SELECT CAST(window_start AS STRING) AS w, r, COUNT(*) AS n, SUM(amount) AS s
  FROM TABLE(TUMBLE(TABLE sold_all, DESCRIPTOR(`at`), INTERVAL '60' SECOND))
  GROUP BY window_start, window_end, r;
CREATE VIEW now AS SELECT o.amount, a.region FROM orders AS o JOIN accounts AS a ON o.account = a.id;
CREATE VIEW totals AS SELECT r, COUNT(*) AS n, SUM(amount) AS s
  FROM (SELECT region AS r, amount FROM now UNION ALL SELECT 'all', amount FROM now) GROUP BY r"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Of a run, which is called ``name``. ``input``: how the names of its topics begin; ``ends``: by table
    and partition; ``rows``: of an epoch, at most."""

    name: str
    folder: str
    servers: str
    database: str
    input: str
    ends: Mapping[str, Mapping[str, int]]
    rows: int

    @staticmethod
    def of(folder: Path) -> Place:
        return Place(**json.loads((folder / "job.json").read_text()))

    def save(self) -> None:
        Path(self.folder, "job.json").write_text(json.dumps(asdict(self)))

    def sink(self, sums: str) -> str:
        """What its topic and its table are called."""
        return f"{self.name}_{sums}"

    def delta(self, sums: str) -> Path:
        return Path(self.folder, f"delta_{sums}")


def make_tables(place: Place) -> None:
    """In the database."""
    for sums, key in SUMS.items():
        columns = f"{key}, {_MEASURES}".replace("STRING", "VARCHAR(30)")
        query(place.database, f"CREATE TABLE {place.sink(sums)} ({columns}, PRIMARY KEY ({_names(key)}))")


def statements(place: Place) -> list[str]:
    made = [
        _source(place, "accounts", "id INT, region STRING", 0),
        _source(place, "orders", "id INT, account INT, amount BIGINT", LATENESS),
        *_JOINS.split(";"),
    ]
    inserts = []
    for sums, key in SUMS.items():
        columns = f"{key}, {_MEASURES}, PRIMARY KEY ({_names(key)}) NOT ENFORCED"
        made.append(_topic(place, sums, columns))
        made.append(jdbc_table(f"{sums}_jdbc", columns, place.database, **{"table-name": place.sink(sums)}))
        made.append(
            f"CREATE TABLE {sums}_delta ({columns}) WITH ('connector' = 'delta', 'sink.buckets' = '4',"
            f" 'table-path' = '{place.delta(sums)}')"
        )
        inserts += [f"INSERT INTO {sums}_{sink} SELECT * FROM {sums}" for sink in ("topic", "jdbc", "delta")]
    return [*made, f"EXECUTE STATEMENT SET BEGIN {'; '.join(inserts)}; END"]


def _source(place: Place, name: str, columns: str, lateness: int) -> str:
    offsets = ";".join(f"partition:{p},offset:{end}" for p, end in place.ends[name].items())
    return (
        f"CREATE TABLE {name} ({columns}, `at` TIMESTAMP(3),"
        f" WATERMARK FOR `at` AS `at` - INTERVAL '{lateness}' SECOND, PRIMARY KEY (id) NOT ENFORCED)"
        f" WITH ('connector' = 'kafka', 'topic' = '{place.input}-{name}',"
        f" 'properties.bootstrap.servers' = '{place.servers}', 'format' = 'debezium-json',"
        " 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'specific-offsets',"
        f" 'scan.bounded.specific-offsets' = '{offsets}')"
    )


def _topic(place: Place, sums: str, columns: str) -> str:
    return (
        f"CREATE TABLE {sums}_topic ({columns}) WITH ('connector' = 'upsert-kafka', 'key.format' = 'json',"
        f" 'value.format' = 'json', 'topic' = '{place.sink(sums)}',"
        f" 'properties.bootstrap.servers' = '{place.servers}', 'sink.delivery-guarantee' = 'exactly-once',"
        f" 'sink.transactional-id-prefix' = '{place.name}', 'sink.staging-path' = '{place.folder}/staging')"
    )


def _names(columns: str) -> str:
    return ", ".join(column.split()[0] for column in columns.split(", "))


def main() -> None:
    place = Place.of(Path(sys.argv[1]))
    session = Session(
        {
            "tidemill.epoch.max-rows": str(place.rows),
            "execution.checkpointing.dir": f"{place.folder}/checkpoint",
            "table.exec.mini-batch.allow-latency": "10 ms",
            "parallelism.default": "2",
        }
    )
    session.environment.context.on_progress = lambda progress: print("epoch", progress.epoch, flush=True)
    session.execute(*statements(place))


if __name__ == "__main__":
    main()
