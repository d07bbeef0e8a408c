"""Generated nested subqueries, also over changes, become plans that run, in both modes: none is refused."""

from __future__ import annotations

from functools import cache

import pytest

from tests.plan.nested_queries import TABLES, random_query
from tidemill.physical.batch.planner import plan_batch
from tidemill.plan.optimizer import optimize
from tidemill.runtime.job.graphs import unread_job
from tidemill.session import binding, planning
from tidemill.session.context import SessionContext
from tidemill.session.dispatch import execute
from tidemill.sql.parser import parse_statement
from tidemill.sql.statements import Query

BLOCK = 10


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "block" in metafunc.fixturenames:
        first = metafunc.config.getoption("--seed") * 1_000_000
        metafunc.parametrize("block", range(first, first + metafunc.config.getoption("--queries"), BLOCK))


@cache
def session(written: str) -> SessionContext:
    made = SessionContext()
    for table, columns in TABLES.items():
        declared = ", ".join(f"{c} INT" for c in columns)
        options = f"'connector' = 'filesystem', 'path' = '/none/{table}', 'format' = '{written}'"
        execute(parse_statement(f"CREATE TABLE {table} ({declared}) WITH ({options})"), made)
    return made


def convert(text: str, written: str) -> None:
    context, statement = session(written), parse_statement(text)
    assert isinstance(statement, Query)
    optimized = optimize(binding.bind(context, statement))
    roots = planning.physical_job(context.configuration, [optimized])
    unread_job(roots, context.configuration, frames=context.frames, zone=context.time_zone)
    plan_batch(optimized, context.configuration, planning.table_size)


@pytest.mark.parametrize("written", ["json", "debezium-json"])
def test_every_form_is_planned(block: int, written: str) -> None:
    for seed in range(block, block + BLOCK):
        convert(random_query(seed).text, written)


@pytest.mark.parametrize("limit", ["LIMIT 1", "LIMIT 2 OFFSET 1", "OFFSET 1 ROWS"])
@pytest.mark.parametrize("written", ["json", "debezium-json"])
def test_limit_without_an_order(written: str, limit: str) -> None:
    convert(
        f"SELECT k, (SELECT COUNT(*) FROM (SELECT w FROM i WHERE i.g = o.k {limit}) AS x) FROM o", written
    )
    convert(f"SELECT k FROM o WHERE v IN (SELECT w FROM i WHERE i.g < o.k {limit})", written)
