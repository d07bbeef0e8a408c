"""Another query whose state goes on may show something else in a column of a sink: it is named, column by
column."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from tests.runtime.evolution.changing_query import compiled_job, session
from tidemill.errors import StateError
from tidemill.runtime.checkpoint.evolution import Evolution, evolution
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.session.context import SessionContext


def tables(kind: str = "BIGINT") -> list[str]:
    made = (
        f"CREATE TABLE {name} ({columns}) WITH ('connector'='filesystem', 'path'='/{name}', "
        "'format'='json', 'source.monitor-interval'='1 s')"
        for name, columns in (("l", f"k INT, a {kind}, b {kind}"), ("r", f"j INT, a {kind}, x {kind}"))
    )
    return [*made, "CREATE TABLE s (k INT, p BIGINT, q BIGINT) WITH ('connector'='blackhole')"]


def job(context: SessionContext, query: str, stored: JobIdentity | None = None) -> JobIdentity:
    """The job of ``query`` into s, by the names of what is stored."""
    return compiled_job(context, f"INSERT INTO s {query}", stored)


def changed(before: str, after: str) -> Evolution:
    stored = job(session(*tables()), before)
    return evolution(stored, job(session(*tables()), after, stored))


def told(found: Evolution) -> list[str]:
    return [str(change) for change in found.changes if change.operator.startswith("the rows of")]


JOINED = "SELECT k, {} FROM l JOIN r ON k = j"
PLAIN = "SELECT k, {} FROM l"
GROUPED = "SELECT k, {} FROM l GROUP BY k"
SINK = "the rows of default_catalog.default_database.s: column "


@pytest.mark.parametrize(
    ("query", "before", "after", "wanted"),
    [
        (JOINED, "b, x", "x, b", [("p", "b", "x"), ("q", "x", "b")]),
        (JOINED, "l.a, x", "r.a, x", [("p", "a", "another a")]),
        (JOINED, "b, x", "b AS other, x AS name", []),
        (JOINED, "b, CAST(NULL AS BIGINT)", "b, x", []),
        (
            GROUPED,
            "SUM(a) AS s, COUNT(*) AS n",
            "COUNT(*) AS n, SUM(a) AS s",
            [("p", "SUM(a)", "COUNT(*)"), ("q", "COUNT(*)", "SUM(a)")],
        ),
        (GROUPED, "SUM(a), 1", "SUM(a) + 1, 1", [("p", "SUM(a)", "+(SUM(a), 1:BIGINT)")]),
        (PLAIN, "a, b", "a, a + b", [("q", "b", "+(a, b)")]),
    ],
)
def test_a_column_of_a_sink_that_shows_something_else_is_named(
    query: str, before: str, after: str, wanted: list[tuple[str, str, str]]
) -> None:
    found = changed(query.format(before), query.format(after))
    assert told(found) == [f"{SINK}{name}: replaced (it was {a}, now it is {b})" for name, a, b in wanted]
    assert not (wanted and found.is_same)
    found.check("the savepoint 's'")


def test_a_wider_type_shows_the_same() -> None:
    stored = job(session(*tables("INT")), JOINED.format("b, x"))
    found = evolution(stored, job(session(*tables("BIGINT")), JOINED.format("b, x"), stored))
    assert {change.verdict.value for change in found.changes} == {"kept", "converted"}


def test_a_record_that_does_not_say_what_was_shown_names_nothing() -> None:
    context = session(*tables())
    data = asdict(job(context, JOINED.format("b, x")))
    del data["shown"]
    stored = JobIdentity.from_json(data)
    assert told(evolution(stored, job(context, JOINED.format("x, b"), stored))) == []


KEEPS = (
    "CREATE TABLE cdc (k INT, a BIGINT) WITH "
    "('connector'='filesystem', 'path'='/c', 'format'='debezium-json')",
    "CREATE TABLE u (k INT, p BIGINT{}, PRIMARY KEY (k) NOT ENFORCED) WITH "
    "('connector'='jdbc', 'url'='jdbc:sqlite:/u', 'table-name'='u')",
)


@pytest.mark.parametrize(("column", "why"), [("", ""), (" NOT NULL", "its type is BIGINT NOT NULL")])
def test_a_sink_that_keeps_rows_shows_null_where_its_column_may_be_null(column: str, why: str) -> None:
    """What is NULL for rows stored before need not be NULL in any row of the new query."""
    context = session(*(text.format(column) for text in KEEPS))
    stored = compiled_job(context, "INSERT INTO u SELECT k, COALESCE(a, 0) FROM cdc")
    wanted = compiled_job(context, "INSERT INTO u SELECT k, COALESCE(a, 1) FROM cdc", stored)
    found = evolution(stored, wanted)
    if why:
        with pytest.raises(StateError, match=why):
            found.check("the savepoint 's'")
    else:
        found.check("the savepoint 's'")
        assert any("is NULL for rows stored before epoch 2" in change.detail for change in found.changes)
        again = compiled_job(context, "INSERT INTO u SELECT k, COALESCE(a, 1) FROM cdc", wanted)
        assert evolution(wanted, again).is_same
