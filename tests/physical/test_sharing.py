"""Operators over the same rows, in the same sense, are one, whatever columns their readers want."""

from __future__ import annotations

import pytest

from tests.physical.test_digests import TABLES
from tidemill.physical import nodes as p
from tidemill.physical.digests import Digests
from tidemill.physical.explain.differences import differences
from tidemill.physical.tree import walk
from tidemill.plan.optimizer import optimize
from tidemill.session import binding, planning
from tidemill.session.context import SessionContext
from tidemill.session.dispatch import execute
from tidemill.sql.parser import parse_statement
from tidemill.sql.statements import Query

VIEW = "(SELECT k, COUNT(*) AS n, SUM(j + 1) AS t, MAX(j) AS m FROM a WHERE v = 'x' GROUP BY k)"
JOIN = "(SELECT a.k, a.v, a.j, b.w, b.id FROM a JOIN b ON a.k = b.id AND a.j > b.w)"
WINDOWS = (
    "(SELECT k, window_start, window_end, COUNT(*) AS n, MAX(j) AS m FROM "
    "TABLE(TUMBLE(TABLE a, DESCRIPTOR(t), INTERVAL '1' HOUR)) GROUP BY k, window_start, window_end)"
)
ONE_JOB = {
    "columns of a join": (
        [f"SELECT v FROM {JOIN}", f"SELECT id, w FROM {JOIN}", f"SELECT j + 1 FROM {JOIN}"],
        1,
    ),
    "what is computed of a join's columns": (
        [f"SELECT v, COUNT(*) FROM {JOIN} GROUP BY v", f"SELECT v, MAX(w) FROM {JOIN} GROUP BY v"],
        2,
    ),
    "other conditions of a join": (
        [f"SELECT v FROM {JOIN}", "SELECT a.v FROM a JOIN b ON a.k = b.id AND a.j < b.w"],
        2,
    ),
    "joins that take pairs back": (
        ["SELECT a.v FROM a LEFT JOIN b ON a.k = b.id", "SELECT a.j FROM a LEFT JOIN b ON a.k = b.id"],
        2,
    ),
    "columns of windows": (
        [
            f"SELECT k, n FROM {WINDOWS}",
            f"SELECT m, window_start FROM {WINDOWS}",
            f"SELECT k, n, m FROM {WINDOWS}",
        ],
        1,
    ),
    "other windows": (
        [f"SELECT k, n FROM {WINDOWS}", f"SELECT k, m FROM {WINDOWS.replace('HOUR', 'DAY')}"],
        2,
    ),
    "columns of a view": (
        [f"SELECT k, n FROM {VIEW}", f"SELECT t, k FROM {VIEW}", f"SELECT m FROM {VIEW}"],
        1,
    ),
    "a table with other columns, read as they are and computed": (
        [
            "SELECT k, SUM(j) FROM a GROUP BY k",
            "SELECT k, MAX(v) FROM a GROUP BY k",
            "SELECT MIN(t) FROM a GROUP BY k",
        ],
        1,
    ),
    "branches and a self-join": (
        [
            f"SELECT k, n FROM {VIEW} UNION ALL "
            f"SELECT l.k, r.m FROM {VIEW} l JOIN {VIEW} r ON l.k = r.k AND l.t = 1"
        ],
        2,
    ),
    "an aggregation of one": (
        [f"SELECT n, COUNT(*) FROM {VIEW} GROUP BY n", f"SELECT n, MAX(k) FROM {VIEW} GROUP BY n"],
        2,
    ),
    "conditions": (["SELECT COUNT(*) FROM a WHERE k = 1", "SELECT SUM(k) FROM a WHERE k = 2"], 2),
    "keys": (["SELECT k, COUNT(*) FROM a GROUP BY k", "SELECT j, SUM(k) FROM a GROUP BY j"], 2),
    "keys in another order": (
        ["SELECT k, j, COUNT(*) FROM a GROUP BY k, j", "SELECT k, j, SUM(k) FROM a GROUP BY j, k"],
        2,
    ),
    "how long state is kept": (
        [
            "SELECT k, COUNT(*) FROM a GROUP BY k",
            "SELECT /*+ STATE_TTL('a' = '1 h') */ k, SUM(j) FROM a GROUP BY k",
        ],
        2,
    ),
    "what never takes a row back": (["SELECT DISTINCT k FROM a", "SELECT k, SUM(j) FROM a GROUP BY k"], 2),
    "another value at every look": (
        ["SELECT k, SUM(RAND()) FROM a GROUP BY k", "SELECT k, MAX(j + RAND()) FROM a GROUP BY k"],
        2,
    ),
}


def planned(queries: list[str]) -> list[tuple[p.PhysicalNode, p.PhysicalNode]]:
    """Flink's view of each, and what runs."""
    context = SessionContext()
    for text in TABLES:
        execute(parse_statement(text), context)
    parsed = [parse_statement(query) for query in queries]
    bound = [binding.bind(context, query) for query in parsed if isinstance(query, Query)]
    config, optimized = context.configuration, [optimize(plan) for plan in bound]
    runs = planning.physical_job(config, optimized)
    return list(zip(planning.flink_views(config, optimized), runs, strict=True))


def operators(plans: list[tuple[p.PhysicalNode, p.PhysicalNode]]) -> set[str]:
    digests = Digests()
    nodes = (node for _, runs in plans for node in walk(runs))
    kinds = (p.GroupAggregate, p.WindowAggregate, p.Join)
    return {digests.of(node) for node in nodes if isinstance(node, kinds)}


@pytest.mark.parametrize("case", ONE_JOB)
def test_how_many_run(case: str) -> None:
    queries, expected = ONE_JOB[case]
    plans = planned(queries)
    found = operators(plans)
    assert len(found) == expected
    assert [runs.fields for _, runs in plans] == [view.fields for view, _ in plans]
    # The order of the readers is no part of what runs.
    assert operators(planned(queries[::-1])) == found


def test_the_plan_says_what_is_computed_for_others() -> None:
    first, second = planned([f"SELECT k, n FROM {VIEW}", f"SELECT k, n, m FROM {VIEW}"])
    for plan, note in (
        (first, "one with MAX(j) AS m of other readers"),
        (second, "one for other readers, too"),
    ):
        view, runs = plan
        (shown,) = (node for node in walk(view) if isinstance(node, p.GroupAggregate))
        assert differences(view, runs)[id(shown)].startswith(note)
