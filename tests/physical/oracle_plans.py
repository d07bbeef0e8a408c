"""Plans against recorded ones of Flink 2.3: the same nodes (Calc aside) with the same changelog modes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import ALL_KINDS, INSERT_ONLY, UPSERT, RowKind
from tidemill.config.option import Configuration
from tidemill.errors import TidemillError
from tidemill.physical.batch.planner import plan_batch
from tidemill.physical.batch.view import flink_view as batch_view
from tidemill.physical.batch.view.text import batch_text
from tidemill.physical.conversion import PlannerContext
from tidemill.physical.explain.text import physical_plan
from tidemill.physical.explain.view.flink_view import flink_view
from tidemill.physical.traits.mini_batch import mini_batch_config
from tidemill.plan.optimizer import optimize
from tidemill.session import binding, planning
from tidemill.session.context import SessionContext
from tidemill.session.dispatch import execute
from tidemill.sql.parser import parse_statement
from tidemill.sql.statements import Query

RECORDED = Path(__file__).parent / "recorded"
_FILE = "WITH ('connector' = 'filesystem', 'path' = '/none', 'format' = 'csv')"
_OTHER = "WITH ('connector' = 'datagen')"
_ROWS = "(usr STRING, url STRING, n BIGINT)"
_ORDER = "oid INT, uid INT, product STRING, qty INT"
_TARGET = "a INT, b STRING, c BIGINT"
TABLES = (
    f"CREATE TABLE clicks {_ROWS} {_OTHER}",
    f"CREATE TABLE fc {_ROWS} {_FILE}",
    f"CREATE TABLE orders ({_ORDER}, price DECIMAL(10, 2), PRIMARY KEY (oid) NOT ENFORCED) {_FILE}",
    f"CREATE TABLE onopk ({_ORDER}) {_FILE}",
    f"CREATE TABLE users (uid INT, name STRING, city STRING, PRIMARY KEY (uid) NOT ENFORCED) {_FILE}",
    f"CREATE TABLE ups (id INT, v STRING, w INT, PRIMARY KEY (id) NOT ENFORCED) {_FILE}",
    "CREATE TABLE ev (id INT, cat STRING, amt INT, ts TIMESTAMP(3), pt AS PROCTIME(), "
    f"WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) {_FILE}",
    f"CREATE TABLE snk_up ({_TARGET}, PRIMARY KEY (a) NOT ENFORCED) {_FILE}",
    f"CREATE TABLE snk_all ({_TARGET}, PRIMARY KEY (a) NOT ENFORCED) {_FILE}",
    f"CREATE TABLE snk_nopk ({_TARGET}) {_FILE}",
    f"CREATE TABLE snk_retract ({_TARGET}, PRIMARY KEY (a) NOT ENFORCED) {_FILE}",
)
CHANGELOGS = {"ups": UPSERT, "orders": ALL_KINDS, "onopk": ALL_KINDS, "users": ALL_KINDS}
DIFFERENT = {
    "SELECT usr, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY usr ORDER BY n) rn FROM clicks) "
    "WHERE rn = 1": "a better row replaces an earlier one, so it is not insert-only",
    "SELECT id, amt FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY cat ORDER BY ts DESC, amt) rn FROM ev) "
    "WHERE rn = 1": "a better row replaces an earlier one, so it is not insert-only",
    "SELECT * FROM (SELECT oid, uid, RANK() OVER (PARTITION BY uid ORDER BY qty DESC) rn FROM orders) "
    "WHERE rn <= 2": "RANK is supported",
    "SELECT * FROM clicks ORDER BY n": "ORDER BY without LIMIT is planned",
    "SELECT product, SUM(qty) OVER (PARTITION BY product) FROM orders": "OVER takes any changelog",
    "SELECT usr, COUNT(*) FROM clicks GROUP BY usr": "mini-batch needs neither a latency nor a size",
    "SELECT usr, APPROX_COUNT_DISTINCT(n) FROM clicks GROUP BY usr": "counted exactly",
    "SELECT usr FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY usr ORDER BY n DESC) rn FROM clicks) "
    "WHERE rn > 1": "a rank without an end is an OVER with a filter",
    "SELECT usr FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY usr ORDER BY n DESC) rn FROM clicks) "
    "WHERE rn <= n": "a rank without a constant end is an OVER with a filter",
    "SELECT usr FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY n DESC) rn FROM (SELECT *, ROW_NUMBER() OVER "
    "(PARTITION BY usr ORDER BY n DESC) rn1 FROM clicks) WHERE rn1 <= 3) WHERE rn <= 2": (
        "the inner rank is not kept as a key for the outer one"
    ),
    "SELECT usr FROM clicks WHERE n > (SELECT MAX(uid) FROM users)": "mini-batch reaches into subqueries",
    "SELECT * FROM clicks c, UNNEST(ARRAY[1,2]) AS t(x) WHERE x > 1 AND n > 2": (
        "UNNEST is a Correlate, of constants too"
    ),
}


@cache
def session() -> SessionContext:
    context = SessionContext()
    for text in TABLES:
        execute(parse_statement(text), context)
    return context


def source_kinds(table: CatalogTable, options: object) -> frozenset[RowKind]:
    return CHANGELOGS.get(table.path.name, INSERT_ONLY)


def sink_kinds(table: CatalogTable, options: object, wanted: frozenset[RowKind]) -> frozenset[RowKind]:
    fixed = {"snk_up": UPSERT, "snk_retract": ALL_KINDS, "snk_all": wanted - {RowKind.UPDATE_BEFORE}}
    return fixed.get(table.path.name, wanted)


def planned(sql: str, options: Mapping[str, str], *, batch: bool) -> str:
    """The optimized physical plan's text, the way EXPLAIN gets it."""
    context = session()
    context.configuration = Configuration({"table.exec.sink.require-on-conflict": "true", **options})
    statement = parse_statement(sql)
    bind: Any = binding.bind if isinstance(statement, Query) else binding.bind_insert
    logical = bind(context, statement)
    optimized = optimize(logical)
    if batch:
        plan = plan_batch(optimized, context.configuration, planning.table_size)
        return batch_text(batch_view.flink_view(plan, context.configuration), {})
    planner = PlannerContext(
        config=context.configuration,
        source_kinds=source_kinds,
        sink_kinds=sink_kinds,
        mini_batch=mini_batch_config(context.configuration, explicit=True),
    )
    return physical_plan(flink_view(optimized, planner), changelog_mode=True)


def skeleton(text: str) -> list[str]:
    """``depth Name kinds`` per node without Calc nodes, as recorded."""
    found: list[str] = []
    calcs: list[int] = []
    for line in text.splitlines():
        match = re.match(r"^((?:[:+ ][- ] )*)(\w+)\(", line)
        assert match, line
        depth = len(match.group(1)) // 3
        while calcs and calcs[-1] >= depth:
            calcs.pop()
        if match.group(2) == "Calc":
            calcs.append(depth)
            continue
        kinds = re.search(r"changelogMode=\[([A-Z,]*)\]", line)
        found.append(f"{depth - len(calcs)} {match.group(2)}" + (f" {kinds.group(1)}" if kinds else ""))
    return found


def cases(name: str) -> list[Any]:
    found = []
    for case in json.loads((RECORDED / f"{name}.json").read_text()):
        settings = " ".join(case.get("options", {}).values())
        reason = DIFFERENT.get(case["sql"]) if name == "streaming" and _differs(case) else None
        marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
        found.append(pytest.param(case, id=f"{case['sql'][:70]} {settings}".strip(), marks=marks))
    return found


def _differs(case: dict[str, Any]) -> bool:
    """The plain GROUP BY under mini-batch differs only in what Flink demands of the options."""
    return "error" in case or case["sql"] != "SELECT usr, COUNT(*) FROM clicks GROUP BY usr"


def check(case: dict[str, Any], *, batch: bool) -> None:
    if "error" in case:
        with pytest.raises(TidemillError) as raised:
            planned(case["sql"], case.get("options", {}), batch=batch)
        words = set(re.findall(r"\w{5,}", case["error"])) & set(re.findall(r"\w{5,}", str(raised.value)))
        assert len(words) >= 3, str(raised.value)
        return
    text = planned(case["sql"], case.get("options", {}), batch=batch)
    assert skeleton(text) == case["plan"], text


@pytest.mark.parametrize("case", cases("streaming"))
def test_streaming_plan(case: dict[str, Any]) -> None:
    check(case, batch=False)


@pytest.mark.parametrize("case", cases("batch"))
def test_batch_plan(case: dict[str, Any]) -> None:
    check(case, batch=True)
