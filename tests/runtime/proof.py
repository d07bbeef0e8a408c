"""The job of the kill proof, in a process of its own: ``python -m tests.runtime.proof FOLDER DATABASE``.

Three queries that remember much, into files and a database: COUNT(DISTINCT) in two levels, a join of two
changelogs under an aggregation, and a Top-N of sums. ``FOLDER/in`` is their input (``make_input``). Says a
line for every epoch.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from tests import visible
from tests.runtime.databases import created, debezium_table, deleted, drop_file, jdbc_table, query, updated
from tests.runtime.running import Session

ROWS = 12
"""Of each table in an epoch."""
TABLES = ("revenue", "best")
FILES = ("visitors", "seen")
_COLUMNS = {
    "revenue": "region STRING, amount BIGINT, orders BIGINT, PRIMARY KEY (region) NOT ENFORCED",
    "best": "place BIGINT, customer INT, amount BIGINT, PRIMARY KEY (place) NOT ENFORCED",
}
_INSERTS = """EXECUTE STATEMENT SET BEGIN
INSERT INTO seen SELECT page, visitor FROM visits WHERE MOD(visitor, 3) = 0;
INSERT INTO visitors SELECT COUNT(*), SUM(c), MAX(c)
  FROM (SELECT page, COUNT(DISTINCT visitor) AS c FROM visits GROUP BY page);
INSERT INTO revenue SELECT region, SUM(amount), COUNT(*)
  FROM orders JOIN customers ON orders.customer = customers.id GROUP BY region;
INSERT INTO best SELECT place, customer, amount FROM (
  SELECT customer, amount, ROW_NUMBER() OVER (ORDER BY amount DESC, customer) AS place FROM (
    SELECT customer, SUM(amount) AS amount FROM orders GROUP BY customer)) WHERE place <= 5;
END"""


def make_input(folder: Path, epochs: int, seed: int = 1) -> None:
    """About so many epochs of visits, and of orders and customers that come, change and go."""
    chance = random.Random(seed)
    (folder / "visits").mkdir(parents=True)
    lines = (f"{chance.randrange(9)},{chance.randrange(200)}\n" for _ in range(epochs * ROWS))
    (folder / "visits" / "a.csv").write_text("".join(lines))
    drop_file(folder / "customers", "a.json", _customers(chance, epochs * ROWS))
    drop_file(folder / "orders", "a.json", _orders(chance, epochs * ROWS))


def _customers(chance: random.Random, count: int) -> list[str]:
    rows = [{"id": n, "region": chance.choice("nesw")} for n in range(40)]
    messages = [created(**row) for row in rows]
    while len(messages) < count:
        place = chance.randrange(len(rows))
        region = chance.choice("nesw")
        messages.append(updated(rows[place], region=region))
        rows[place] = rows[place] | {"region": region}
    return messages[:count]


def _orders(chance: random.Random, count: int) -> list[str]:
    rows: list[dict[str, Any]] = []
    messages: list[str] = []
    while len(messages) < count:
        deed = chance.random()
        if deed < 0.6 or len(rows) < 5:
            rows.append(
                {"id": len(messages), "customer": chance.randrange(45), "amount": chance.randrange(99)}
            )
            messages.append(created(**rows[-1]))
        elif deed < 0.85:
            place = chance.randrange(len(rows))
            amount = chance.randrange(99)
            messages.append(updated(rows[place], amount=amount))
            rows[place] = rows[place] | {"amount": amount}
        else:
            messages.append(deleted(**rows.pop(chance.randrange(len(rows)))))
    return messages


def make_database(database: str) -> None:
    """Empty tables."""
    text = "CREATE TABLE {} ({})"
    for table in TABLES:
        columns = _COLUMNS[table].replace("STRING", "VARCHAR(9)").replace(" NOT ENFORCED", "")
        query(database, f"DROP TABLE IF EXISTS {table}")
        query(database, text.format(table, columns))


def results(folder: Path, database: str) -> dict[str, Any]:
    """All that the job has written: rows of tables, lines of files, and what a changelog adds up to."""
    found: dict[str, Any] = {t: sorted(query(database, f"SELECT * FROM {t}")) for t in TABLES}
    found["seen"] = sorted(visible.lines(folder / "seen"))
    rows: dict[str, int] = {}
    for line in visible.lines(folder / "visitors"):
        message = json.loads(line)
        for image, weight in ((message["before"], -1), (message["after"], 1)):
            if image is not None:
                rows[json.dumps(image)] = rows.get(json.dumps(image), 0) + weight
    found["visitors"] = {row: weight for row, weight in rows.items() if weight}
    return found


def main() -> None:
    folder, database = Path(sys.argv[1]), sys.argv[2]
    source, keyed = folder / "in", "PRIMARY KEY (id) NOT ENFORCED"
    made = Session(
        {
            "tidemill.epoch.max-rows": str(ROWS),
            "execution.checkpointing.dir": str(folder / "checkpoint"),
            "parallelism.default": "2",
            # Each start draws which epochs have one partition: none, some or all.
            "tidemill.epoch.small-bytes": random.choice(("0", "2500b", "1mb")),
            "table.optimizer.distinct-agg.split.enabled": "true",
        }
    )
    made.environment.context.on_progress = lambda progress: print("epoch", progress.epoch, flush=True)
    made.execute(
        "CREATE TABLE visits (page INT, visitor INT) WITH ('connector' = 'filesystem', 'format' = 'csv',"
        f" 'path' = '{source / 'visits'}')",
        debezium_table("customers", f"id INT, region STRING, {keyed}", source / "customers"),
        debezium_table("orders", f"id INT, customer INT, amount BIGINT, {keyed}", source / "orders"),
        "CREATE TABLE seen (page INT, visitor INT) WITH ('connector' = 'filesystem', 'format' = 'csv',"
        f" 'path' = '{folder / 'seen'}')",
        debezium_table("visitors", "pages BIGINT, visitors BIGINT, most BIGINT", folder / "visitors"),
        *(jdbc_table(table, _COLUMNS[table], database) for table in TABLES),
        _INSERTS,
    )


if __name__ == "__main__":
    main()
