"""Digests of plans: the same in every process, different where the meaning is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.physical.builders import CLICKS, ORDERS, aggregate, call, plan, scan
from tidemill.physical import nodes as p
from tidemill.physical.digests import Digests, canonical
from tidemill.physical.tree import walk
from tidemill.plan.optimizer import optimize
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.sink import compile_result
from tidemill.runtime.job.identity import job_identity
from tidemill.runtime.tables import make_source
from tidemill.session import binding, planning
from tidemill.session.context import SessionContext
from tidemill.session.dispatch import execute
from tidemill.sql.parser import parse_statement
from tidemill.sql.statements import Query

TABLES = (
    "CREATE TABLE a (k INT, j BIGINT, v STRING, t TIMESTAMP(3), WATERMARK FOR t AS t) WITH "
    "('connector'='filesystem', 'path'='/a', 'format'='csv', 'csv.null-literal'='-')",
    "CREATE TABLE b (id INT, w DOUBLE) WITH "
    "('connector'='jdbc', 'url'='jdbc:sqlite:/b', 'table-name'='b', 'password'='{password}')",
)
DIFFERENT_NAMES = "SELECT a.k, b.id, a.v, b.w FROM a JOIN b ON a.k = b.id"
QUERIES = (
    DIFFERENT_NAMES,
    "SELECT x.k, y.id FROM (SELECT k, j, COUNT(*) AS n FROM a GROUP BY k, j) x "
    "LEFT JOIN (SELECT id, MAX(w) AS m FROM b GROUP BY id) y ON x.k = y.id AND x.n > y.m",
    "SELECT k, COUNT(DISTINCT v), LISTAGG(v, ';'), AVG(j) FILTER (WHERE v IN ('x', 'y', 'z')) "
    "FROM a GROUP BY k",
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY j DESC, v) AS r FROM a) "
    "WHERE r <= 3",
    "SELECT k, SUM(j) OVER (PARTITION BY v ORDER BY t) FROM a",
    "SELECT v FROM a WHERE k NOT IN (SELECT id FROM b) AND t > TIMESTAMP '2020-01-01 00:00:00'",
    "SELECT k FROM a INTERSECT ALL SELECT id FROM b",
    *(
        f"SELECT k, COUNT(DISTINCT v) FROM TABLE({window}) GROUP BY window_start, window_end, k"
        for window in (
            "TUMBLE(TABLE a, DESCRIPTOR(t), INTERVAL '1' MONTH)",
            "HOP(TABLE a, DESCRIPTOR(t), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)",
            "CUMULATE(TABLE a, DESCRIPTOR(t), INTERVAL '1' MINUTE, INTERVAL '1' DAY)",
            "SESSION(TABLE a PARTITION BY k, DESCRIPTOR(t), INTERVAL '1' MINUTE)",
        )
    ),
    "SELECT x.k, y.v FROM a x JOIN a y ON x.k = y.j AND x.t BETWEEN y.t AND y.t + INTERVAL '1' HOUR",
    "SELECT * FROM a MATCH_RECOGNIZE (PARTITION BY k ORDER BY t MEASURES LAST(x.v) AS v "
    "PATTERN (x+ y) DEFINE x AS j > 1, y AS y.j < x.j)",
)


def test_code_has_no_text() -> None:
    for value in (len, planned, object(), ("a", object())):
        with pytest.raises(TypeError, match="no part of a plan"):
            canonical(value)


def planned(query: str, password: str = "p", tables: tuple[str, ...] = TABLES) -> p.PhysicalNode:
    context = SessionContext()
    for text in tables:
        execute(parse_statement(text.replace("{password}", password)), context)
    statement = parse_statement(query)
    assert isinstance(statement, Query)
    logical = optimize(binding.bind(context, statement))
    return planning.physical(context.configuration, logical)


def identity(root: p.PhysicalNode) -> dict[str, object]:
    """Everything by which a job of ``root`` takes up its checkpoint."""
    context = CompileContext(make_source=make_source, frames={}, zone="UTC", parallelism=2, per_record=False)
    context.survey([root])
    compile_result(root, context, SessionContext().configuration)
    found = job_identity([root], context, "job")
    return {
        "job": found.fingerprint,
        "nodes": list(found.nodes),
        "operators": found.operators,
        "sources": sorted(context.sources),
    }


def digest(query: str, password: str = "p") -> str:
    return Digests().of(planned(query, password))


def test_hash_seeds_give_one_identity() -> None:
    """A job is taken up by another process: nothing may depend on the order of a set."""
    script = (
        "import json\n"
        "from tests.physical.test_digests import QUERIES, identity, planned\n"
        "print(json.dumps([identity(planned(q)) for q in QUERIES]))\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            stdout=subprocess.PIPE,
        )
        for seed in range(3)
    ]
    answers = {process.communicate()[0] for process in processes}
    assert len(answers) == 1
    (answer,) = answers
    assert all(part["operators"] for part in json.loads(answer))


def test_digests_do_not_change_with_the_version() -> None:
    """State kept by an older version is found by these."""
    digests = Digests()
    counts = aggregate(scan(CLICKS), (0,), call("COUNT", 2), call("SUM", 2, distinct=True))
    assert digests.of(plan(scan(ORDERS))) == "e6f27960f3bb694c"
    assert digests.of(plan(counts)) == "81832bb07cb1a865"


def test_what_changes_a_digest_and_what_does_not() -> None:
    plain = digest(DIFFERENT_NAMES)
    assert digest(DIFFERENT_NAMES.replace("JOIN", "INNER JOIN")) == plain
    assert digest(DIFFERENT_NAMES, password="another") == plain
    assert digest(DIFFERENT_NAMES.replace("b.id,", "b.id + 0 AS id,")) != plain
    assert digest(DIFFERENT_NAMES.replace("a.k =", "a.k + 0 =")) != plain
    moved = tuple(text.replace("sqlite:/b", "sqlite:/c") for text in TABLES)
    assert Digests().of(planned(DIFFERENT_NAMES, tables=moved)) != plain


def test_leniency_is_not_part_of_a_table_but_tells_scans_of_it_apart() -> None:
    """One job reads the table as it is declared and, by a hint, otherwise."""
    lenient = (
        TABLES[0].replace("'csv.null-literal'", "'csv.ignore-parse-errors'='true', 'csv.null-literal'"),
    )
    digests, query = Digests(), "SELECT k, v FROM a"
    declared = digests.of(planned(query))
    assert digests.of(planned(query, tables=lenient)) == declared
    hint = "SELECT k, v FROM a /*+ OPTIONS('csv.ignore-parse-errors'='true') */"
    assert digests.of(planned(hint)) != declared
    assert digests.of(planned(hint, tables=lenient)) == declared


def test_equal_parts_of_different_queries_have_equal_digests() -> None:
    counts = "SELECT k, COUNT(*) AS n FROM a GROUP BY k"
    digests = Digests()
    below = digests.of(planned(counts))
    above = planned(f"SELECT x.k, x.n, b.w FROM ({counts}) x JOIN b ON x.k = b.id")
    assert below in {digests.of(node) for node in walk(above)}


def test_values_of_different_types_are_told_apart() -> None:
    texts = [canonical(x) for x in (1, "1", 1.0, True, None, b"1", ("1",), frozenset({"1"}), "null")]
    assert len(set(texts)) == len(texts)
    assert canonical(frozenset({"a", "b"})) == canonical(frozenset({"b", "a"}))
