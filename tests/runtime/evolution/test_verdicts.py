"""What another query may have of the state of an aggregation, part by part, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.evolution.changing_query import CDC, CLICKS, ChangingQuery, session
from tidemill.errors import StateError
from tidemill.runtime.checkpoint.evolution import evolution
from tidemill.session.context import SessionContext

TUMBLE = "FROM clicks GROUP BY k, TUMBLE(ts, INTERVAL '1' MINUTE)"
KEPT, ADDED, COMPLETE, DROPPED, REFUSED = "kept", "added", "complete", "dropped", "refused"


@pytest.mark.parametrize(
    ("tables", "before", "after", "verdicts", "why"),
    [
        (
            (CDC,),
            "SUM(a) AS s FROM clicks GROUP BY k",
            "SUM(a) AS s, MAX(a) AS m FROM clicks GROUP BY k",
            [KEPT, KEPT, REFUSED],
            "takes rows back that it would never have seen",
        ),
        (
            (CDC,),
            "MIN(a) AS s FROM clicks GROUP BY k",
            "MIN(a) AS s, MAX(a) AS m FROM clicks GROUP BY k",
            [KEPT, KEPT, REFUSED],
            "takes rows back",
        ),
        (
            (CDC,),
            "SUM(a) AS s, COUNT(a) AS n FROM clicks GROUP BY k",
            "AVG(a) AS v, SUM(a) AS s, COUNT(*) AS m FROM clicks GROUP BY k",
            [KEPT, COMPLETE, KEPT, COMPLETE, DROPPED],
            "",
        ),
        (
            (),
            "SUM(a) AS s FROM clicks GROUP BY k",
            "SUM(a) AS s FROM clicks GROUP BY k HAVING SUM(a) > 3",
            [KEPT, KEPT],
            "",
        ),
        (
            (),
            "SUM(a) AS s FROM clicks GROUP BY k",
            "COALESCE(SUM(a), -1) * 2 AS other FROM clicks GROUP BY k",
            [KEPT, KEPT],
            "",
        ),
        (
            (),
            "SUM(a) AS s FROM clicks GROUP BY k",
            "SUM(a) AS s FROM clicks GROUP BY k, b",
            [REFUSED, DROPPED],
            "where this query has",
        ),
        (
            (),
            "SUM(a) AS s FROM clicks GROUP BY k, b",
            "SUM(a) AS s FROM clicks GROUP BY b, k",
            [REFUSED, DROPPED],
            r"kept by .k, b., this query needs it by .b, k.: rows lie by keys in their order",
        ),
        (
            (),
            "SUM(a) AS s FROM clicks GROUP BY k",
            "SUM(a) AS s FROM (SELECT * FROM clicks WHERE b > 1) GROUP BY k",
            [REFUSED, DROPPED],
            "b, 1",
        ),
        (
            (),
            "SUM(a) AS s FROM (SELECT k, a FROM clicks UNION ALL SELECT k, a FROM clicks) GROUP BY k",
            "SUM(a) AS s, MAX(b) AS m FROM (SELECT * FROM clicks UNION ALL SELECT * FROM clicks) GROUP BY k",
            [KEPT, KEPT, ADDED],
            "",
        ),
        (
            (),
            "SUM(a) AS s FROM clicks GROUP BY k",
            "SUM(a) AS s, PERCENTILE(a, 0.5) AS p FROM clicks GROUP BY k",
            [KEPT, KEPT, ADDED],
            "",
        ),
        (
            (),
            f"COLLECT(a) AS c, MAX(b) AS m {TUMBLE}",
            f"COLLECT(a) AS c, MIN(b) AS l, COUNT(*) AS n {TUMBLE}",
            [KEPT, KEPT, COMPLETE, COMPLETE, DROPPED],
            "",
        ),
        (
            (),
            f"COUNT(*) AS n {TUMBLE}",
            f"COUNT(*) AS n, LISTAGG(CAST(a AS STRING)) AS l {TUMBLE}",
            [REFUSED, KEPT, ADDED],
            "laid out in another way",
        ),
        (
            (),
            f"COUNT(*) AS n {TUMBLE}",
            f"COUNT(*) AS n {TUMBLE.replace('1', '2')}",
            [REFUSED, DROPPED],
            "where this query has",
        ),
    ],
)
def test_each_change_has_its_verdict(
    tmp_path: Path, tables: tuple[str, ...], before: str, after: str, verdicts: list[str], why: str
) -> None:
    query = ChangingQuery(tmp_path, session(*tables))
    query.start(f"SELECT k, {before}")
    query.number = 4
    assert query.identity is not None
    found = evolution(query.identity, query.compiled(f"SELECT k, {after}")[0])
    assert [change.verdict.value for change in found.changes] == verdicts
    if why:
        with pytest.raises(StateError, match=f"belongs to another query .*{why}"):
            query.start(f"SELECT k, {after}")


def refused(place: Path, tables: list[SessionContext], before: str, after: str, why: str) -> None:
    """``after``, over the second of ``tables``, cannot have the state of ``before`` over the first."""
    job = ChangingQuery(place, tables[0])
    job.start(before)
    job.number, job.context = 1, tables[1]
    with pytest.raises(StateError, match=why):
        job.start(after)


@pytest.mark.parametrize(
    ("before", "after", "query"),
    [
        ("TIME", "INT", "k, COUNT(*) AS n FROM clicks GROUP BY k"),
        ("TIMESTAMP(3)", "TIMESTAMP(0)", "k, COUNT(*) AS n FROM clicks GROUP BY k"),
        ("STRING", "VARCHAR(3)", "k, COUNT(*) AS n FROM clicks GROUP BY k"),
        ("BOOLEAN", "FLOAT", "CAST(k AS STRING) AS k, COUNT(*) AS n FROM clicks GROUP BY CAST(k AS STRING)"),
        ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", "COUNT(*) AS n FROM clicks WHERE EXTRACT(HOUR FROM k) > 5"),
        ("STRING", "INT", "COUNT(*) AS n FROM clicks WHERE k IS NOT NULL"),
    ],
)
def test_a_column_of_another_type_is_another_column_in_keys_and_filters(
    tmp_path: Path, before: str, after: str, query: str
) -> None:
    tables = [session(CLICKS.replace("k INT", f"k {kind}")) for kind in (before, after)]
    refused(tmp_path, tables, f"SELECT {query}", f"SELECT {query}", "belongs to another query")


def test_a_field_of_a_row_is_not_told_by_its_place(tmp_path: Path) -> None:
    tables = [session(CLICKS.replace("k INT", f"k ROW<{row}>")) for row in ("x INT, y INT", "y INT, x INT")]
    refused(
        tmp_path,
        tables,
        "SELECT b, SUM(clicks.k.x) AS s FROM clicks GROUP BY b",
        "SELECT b, SUM(clicks.k.y) AS s FROM clicks GROUP BY b",
        "s was SUM",
    )


def test_a_key_whose_name_speaks_of_epochs_is_compared(tmp_path: Path) -> None:
    name = "`x SINCE 2`"
    tables = [session(CLICKS.replace("k INT", f"{name} {kind}")) for kind in ("BIGINT", "INT")]
    refused(
        tmp_path,
        tables,
        f"SELECT {name}, SUM(b) AS s FROM clicks GROUP BY {name}",
        f"SELECT {name}, SUM(b) AS s, MAX(b) AS m FROM clicks GROUP BY {name}",
        "key 'x SINCE 2' is BIGINT, the query needs INT",
    )


def test_a_type_that_a_call_lost_is_named(tmp_path: Path) -> None:
    tables = [session(CLICKS.replace("a BIGINT", f"a {kind}")) for kind in ("BIGINT", "DOUBLE")]
    refused(
        tmp_path,
        tables,
        "SELECT k, SUM(a) AS s FROM clicks GROUP BY k",
        "SELECT k, SUM(a) AS s FROM clicks GROUP BY k",
        r"s was SUM\(a\) of BIGINT, now it is SUM\(a\) of DOUBLE",
    )


def test_a_column_of_the_result_may_become_what_state_has_all_of(tmp_path: Path) -> None:
    job = ChangingQuery(tmp_path, session(CDC))
    job.start("SELECT k, LISTAGG(CAST(a AS STRING), ',') AS l FROM clicks GROUP BY k")
    job.number = 1
    assert job.identity is not None
    wanted, _ = job.compiled("SELECT k, LISTAGG(CAST(a AS STRING), ';') AS l FROM clicks GROUP BY k")
    found = evolution(job.identity, wanted)
    assert "it is complete from state that is there" in str(found.changes[1])
    found.check("the savepoint 's'", drops=True)
