"""Real Flink reads Iceberg tables that Tidemill has written: with Iceberg's own connector, by the catalog's
file. There the catalog has the name of Flink's."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyiceberg.table import Table

from tests.connectors.lake import batch, staged
from tests.connectors.sinks import sink
from tests.connectors.sources import table
from tests.flink import ICEBERG, ORACLE, SQLITE, MissingError, flink_with
from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY, UPSERT
from tidemill.connectors.iceberg.catalogs import catalog_of
from tidemill.types import logical as t

pytestmark = [pytest.mark.usefixtures("processes"), pytest.mark.thorough]
COLUMNS = {
    "id": t.BIGINT,
    "day": t.DateType(),
    "name": t.STRING,
    "amount": t.DecimalType(precision=10, scale=2),
}
ADD, REMOVE = 2, 3
_HADOOP = Path(pyspark.__file__).parent / "jars"
Rows = dict[int, dict[str, Any]]


@pytest.fixture(scope="module")
def flink() -> dict[str, str]:
    """The environment of an oracle that knows Iceberg."""
    try:
        return flink_with("iceberg", [ICEBERG, SQLITE], sorted(_HADOOP.glob("hadoop-client-*.jar")))
    except MissingError as e:
        pytest.skip(f"NO ICEBERG IS READ BY FLINK: {e}")


def row(number: int, epoch: int) -> dict[str, Any]:
    day = None if number % 5 == 0 else date(2024, 1, 1 + number % 3)
    name = None if number % 7 == 0 else f"näme {epoch}, {number % 4}"
    return {"id": number, "day": day, "name": name, "amount": Decimal(number) / 4}


def declared(root: Path, name: str, *, key: tuple[str, ...], by: tuple[str, ...]) -> CatalogTable:
    options = {
        "connector": "iceberg",
        "warehouse": str(root),
        "catalog-table": name,
        **({"sink.buckets": "3"} if key else {}),
    }
    return table(COLUMNS, options, primary_key=key, partitioned_by=by)


def appended(root: Path) -> Rows:
    into, expected = declared(root, "appended", key=(), by=("day",)), Rows()
    for epoch in range(1, 5):
        added = {n: row(n, epoch) for n in range(epoch * 20, epoch * 20 + 20)}
        target = sink(into, kinds=INSERT_ONLY)
        halves = [list(added.values())[:10], list(added.values())[10:]]
        target.publish(epoch, staged(target, *(batch(into, half) for half in halves), epoch=epoch))
        expected |= added
    return expected


def upserted(root: Path, name: str, by: tuple[str, ...]) -> Rows:
    """Each epoch writes some keys again, and deletes every sixth one."""
    into, expected = declared(root, name, key=("id", *by), by=by), Rows()
    for epoch in range(1, 6):
        changes = [
            (REMOVE if n % 6 == epoch else ADD, row(n, epoch)) for n in range(epoch * 4, epoch * 4 + 30)
        ]
        target = sink(into, kinds=UPSERT)
        made = batch(into, [r for _, r in changes], [kind for kind, _ in changes])
        target.publish(epoch, staged(target, made, epoch=epoch))
        for kind, changed in changes:
            expected.pop(changed["id"], None)
            if kind == ADD:
                expected[changed["id"]] = changed
    return expected


def read_by_flink(flink: dict[str, str], root: Path, names: list[str]) -> dict[str, list[list[Any]]]:
    queries = [f"SELECT * FROM iceberg.`default`.{name}" for name in names]
    script = f"""SET 'execution.runtime-mode' = 'batch';
CREATE CATALOG iceberg WITH ('type' = 'iceberg', 'catalog-impl' = 'org.apache.iceberg.jdbc.JdbcCatalog',
  'uri' = 'jdbc:sqlite:{root}/catalog.db', 'warehouse' = 'file://{root}');
{"; ".join(queries)};
"""
    (root / "read.sql").write_text(script)
    command = [ORACLE, "run", str(root / "read.sql")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=flink, timeout=600)
    document = json.loads(done.stdout)
    assert document["ok"], document["statements"][-1]
    answers = [s["rows"] for s in document["statements"] if s["kind"] == "query"]
    return dict(zip(names, answers, strict=True))


@pytest.mark.timeout(900)
def test_flink_reads_what_is_appended_and_upserted(flink: dict[str, str], tmp_path: Path) -> None:
    expected = {
        "appended": appended(tmp_path),
        "upserted": upserted(tmp_path, "upserted", ()),
        "upserted_by_day": upserted(tmp_path, "upserted_by_day", ("day",)),
    }
    opened: Table = catalog_of("iceberg", {"warehouse": str(tmp_path)}).load_table("default.upserted")
    assert len(opened.snapshots()) >= 5
    found = read_by_flink(flink, tmp_path, list(expected))
    for name, rows in expected.items():
        wanted = Counter(json.dumps(shown(row)) for row in rows.values())
        assert Counter(map(json.dumps, found[name])) == wanted, name


def shown(row: dict[str, Any]) -> list[Any]:
    """As the oracle writes it."""
    return ["+I", row["id"], row["day"] and str(row["day"]), row["name"], f"{row['amount']:.2f}"]
