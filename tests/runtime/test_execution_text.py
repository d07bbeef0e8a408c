"""EXPLAIN EXECUTION_PLAN: stages, exchanges, operators by id, what runs once for several."""

from __future__ import annotations

import re

import pytest

from tests.physical.test_digests import TABLES
from tidemill.errors import NotSupportedError
from tidemill.session.context import SessionContext
from tidemill.session.dispatch import execute
from tidemill.sql.parser import parse_statement

SINK = "CREATE TABLE s (k INT, id BIGINT, n BIGINT) WITH ('connector'='print')"
INSERTS = (
    "INSERT INTO s SELECT a.k, b.id, a.j FROM a JOIN b ON a.k = b.id WHERE a.j > 3; "
    "INSERT INTO s SELECT x.k, y.n, x.n FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY k) AS x "
    "JOIN (SELECT k, COUNT(*) AS n FROM a GROUP BY k) AS y ON x.k = y.k"
)


def explained(statement: str, mode: str = "streaming") -> str:
    """The last section, ids without their digests."""
    context = SessionContext()
    options = {"execution.runtime-mode": mode, "tidemill.epoch.resident": "false"}
    for text in (*TABLES, SINK, *(f"SET '{key}' = '{value}'" for key, value in options.items())):
        execute(parse_statement(text.replace("{password}", "p")), context)
    ((text,),) = list(execute(parse_statement(statement), context).collect())
    assert isinstance(text, str)
    return re.sub(r"-[0-9a-f]{16}", "", text.split("== Execution ==\n")[1])


def test_stages_exchanges_operators_and_what_is_shared() -> None:
    assert explained(f"EXPLAIN EXECUTION_PLAN STATEMENT SET BEGIN {INSERTS}; END").splitlines() == [
        "Stage 1",
        "  join: Join(joinType=[InnerJoin], where=[=(k, id)], select=[k, j, id], "
        "leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey])",
        "    exchange(hash[k]) <- filter over Arrow of scan[k, j]",
        "    exchange(hash[id]) <- scan[id]",
        "Stage 2",
        "  group-aggregate: GroupAggregate(groupBy=[k], select=[k, COUNT(*) AS n])",
        "    exchange(hash[k], local phase while it makes rows fewer) <- scan[k, j]",
        "Stage 3 (in place: no exchange)",
        "  join: Join(joinType=[InnerJoin], where=[=(k, k0)], select=[k, n, k0, n0], "
        "leftInputSpec=[JoinKeyContainsUniqueKey], rightInputSpec=[JoinKeyContainsUniqueKey])",
        "    same partition <- group-aggregate (stage 2)",
        "    same partition <- group-aggregate (stage 2)",
        "sink <- 1 computed columns over Arrow of join (stage 1)",
        "sink <- join (stage 3)",
        "scan runs once for 2 readers",
    ]


def test_different_columns_of_a_view_are_one_aggregation() -> None:
    view = "(SELECT k, COUNT(*) AS n, SUM(j + 1) AS t, MAX(j) AS m FROM a WHERE v = 'x' GROUP BY k)"
    text = explained(
        f"EXPLAIN EXECUTION_PLAN STATEMENT SET BEGIN INSERT INTO s SELECT k, n, n FROM {view}; "
        f"INSERT INTO s SELECT k, t, m FROM {view}; END"
    )
    (line,) = (x for x in text.splitlines() if "group-aggregate:" in x)
    calls = {"COUNT(*) AS n", "SUM($f1) AS t", "MAX(j) AS m"}
    assert set(line.split("select=[k, ")[1].removesuffix("])").split(", ")) == calls
    assert text.count("sink <- own updates of group-aggregate (stage 1)") == 2
    assert "group-aggregate runs once for 2 readers" in text


def test_batch_has_none() -> None:
    with pytest.raises(NotSupportedError, match="EXPLAIN EXECUTION_PLAN is not supported under batch mode"):
        explained("EXPLAIN EXECUTION_PLAN SELECT k FROM a", "batch")


def test_joins_on_one_key_stand_on_each_other_in_tasks_of_bounded_depth() -> None:
    joins = "".join(f" JOIN a t{i} ON t{i}.k = t{i - 1}.k" for i in range(1, 101))
    lines = explained(f"EXPLAIN EXECUTION_PLAN SELECT t0.k FROM a t0{joins}").splitlines()
    assert sum(line.startswith("  join") for line in lines) == 100
    assert [line for line in lines if line.startswith("Stage")] == ["Stage 1", "Stage 2", "Stage 3"]
    assert sum("exchange(" in line and " join (stage" in line for line in lines) == 2


@pytest.mark.thorough
def test_two_hundred_joins_are_laid_out() -> None:
    joins = "".join(f" JOIN a t{i} ON t{i}.k = t{i - 1}.k" for i in range(1, 201))
    assert explained(f"EXPLAIN EXECUTION_PLAN SELECT t0.k FROM a t0{joins}").count("Stage") > 4


def test_not_in_is_partitioned_by_its_key() -> None:
    lines = explained("EXPLAIN EXECUTION_PLAN SELECT k FROM a WHERE j NOT IN (SELECT id FROM b)").splitlines()
    assert [line.strip().split(" <- ")[0] for line in lines if " <- " in line] == [
        "exchange(hash[j])",
        "exchange(hash[id])",
        "summary to every partition",
        "query",
    ]


def test_a_time_that_nobody_reads_is_not_decoded() -> None:
    plain = "INSERT INTO s SELECT k, j, j FROM a WHERE j > 1"
    windows = (
        "INSERT INTO s SELECT k, COUNT(*), 1 FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(t), INTERVAL '1' DAY)) "
        "GROUP BY window_start, window_end, k"
    )
    assert explained(f"EXPLAIN EXECUTION_PLAN {plain}").endswith("filter over Arrow of scan[k, j]\n")
    both = explained(f"EXPLAIN EXECUTION_PLAN STATEMENT SET BEGIN {plain}; {windows}; END")
    assert "sink <- filter over Arrow of scan[k, j, t]\n" in both
    assert "watermarks of (scan[k, j, t])" in both


def test_an_expression_without_a_kernel_runs_in_the_jvm() -> None:
    insert = "EXPLAIN EXECUTION_PLAN INSERT INTO s SELECT k, j, CHAR_LENGTH(INITCAP(v)) FROM a"
    assert explained(insert).endswith("sink <- 1 computed columns in the JVM of scan[k, j, v]\n")
    filtered = explained(f"{insert} WHERE j > 1")
    assert filtered.endswith("sink <- 1 computed columns in the JVM of filter over Arrow of scan[k, j, v]\n")
