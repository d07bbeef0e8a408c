"""Another query whose state goes on may show something else in a column of a sink: it is named, column by
column."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from tests.runtime.evolution.changing_query import session
from tidemill.physical.identities import RULES
from tidemill.plan.optimizer import optimize
from tidemill.runtime.checkpoint.epochs import EpochCommit
from tidemill.runtime.checkpoint.evolution import Evolution, evolution
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.job.graphs import state_names, unread_job
from tidemill.runtime.job.identity import job_identity
from tidemill.session import planning
from tidemill.session.context import SessionContext
from tidemill.sql.parser import parse_statement
from tidemill.sql.statements import Insert


def tables(kind: str = "BIGINT") -> list[str]:
    made = (
        f"CREATE TABLE {name} ({columns}) WITH ('connector'='filesystem', 'path'='/{name}', "
        "'format'='json', 'source.monitor-interval'='1 s')"
        for name, columns in (("l", f"k INT, a {kind}, b {kind}"), ("r", f"j INT, a {kind}, x {kind}"))
    )
    return [*made, "CREATE TABLE s (k INT, p BIGINT, q BIGINT) WITH ('connector'='blackhole')"]


def job(context: SessionContext, query: str, stored: JobIdentity | None = None) -> JobIdentity:
    """The job of ``query`` into s, by the names of what is stored."""
    statement = parse_statement(f"INSERT INTO s {query}")
    assert isinstance(statement, Insert)
    config = context.configuration
    roots = planning.physical_job(config, [optimize(planning.bind_insert(context, statement))])
    commit = EpochCommit(epoch=1, time=0, offsets={}, manifests={}, tokens={})
    names = state_names(stored, commit) if stored is not None else None
    _, compiled = unread_job(roots, config, frames={}, zone="UTC", names=names)
    made = job_identity(roots, compiled, "job", RULES)
    return JobIdentity.from_json(json.loads(json.dumps(asdict(made))))


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
