"""What a job's state depends on: what may change between two starts, and what may not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.user_functions import samples
from tidemill.config.option import Configuration
from tidemill.errors import StateError
from tidemill.physical import nodes as p
from tidemill.physical.identities import RULES, identities
from tidemill.plan.optimizer import optimize
from tidemill.runtime.checkpoint.evolution import evolution
from tidemill.runtime.checkpoint.identity import JobIdentity, changed_functions
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.shared import compiled
from tidemill.runtime.compile.sink import compile_sink
from tidemill.runtime.compile.state_names import StateNames
from tidemill.runtime.job.identity import job_identity
from tidemill.runtime.values_source import ValuesSource
from tidemill.session import binding, planning
from tidemill.session.context import SessionContext
from tidemill.session.dispatch import execute
from tidemill.sql.parser import parse_statement
from tidemill.sql.statements import Insert

CLICKS = (
    "CREATE TABLE clicks (k INT, a BIGINT, b BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' "
    "SECOND) WITH ('connector'='filesystem', 'path'='/c', 'format'='csv', 'source.monitor-interval'='1 s')"
)
SINK = (
    "CREATE TABLE sums (k INT, s BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH "
    "('connector'='jdbc', 'url'='jdbc:sqlite:/s', 'table-name'='t')"
)
SEVEN = "CREATE FUNCTION seven AS 'tests.user_functions.samples.seven' LANGUAGE PYTHON"
SUMS = "INSERT INTO sums SELECT k, SUM(a) AS s, COUNT(*) AS n FROM clicks GROUP BY k"
WINDOWS = (
    "INSERT INTO sums SELECT k, SUM(a) AS s, COUNT(DISTINCT b) AS n FROM TABLE(TUMBLE(TABLE clicks, "
    "DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY k, window_start, window_end"
)
RANKED = (
    "INSERT INTO sums SELECT k, a AS s, b AS n FROM (SELECT k, a, b, ROW_NUMBER() OVER (PARTITION BY k ORDER "
    "BY a) AS r FROM clicks) WHERE r <= 3"
)
JOINED = (
    "INSERT INTO sums SELECT l.k, l.a AS s, r.b AS n FROM clicks l JOIN clicks r ON l.a = r.b WHERE l.k > 1"
)
ALL = (SUMS, WINDOWS, RANKED, JOINED)


def identity(
    insert: str,
    *changes: tuple[str, str],
    zone: str = "UTC",
    rules: int = RULES,
    after: JobIdentity | None = None,
) -> JobIdentity:
    """Of the job of ``insert``, with ``changes`` made to all its statements, which begins with the state of
    ``after`` at its fourth epoch."""

    def changed(text: str) -> str:
        for old, new in changes:
            text = text.replace(old, new)
        return text

    session = SessionContext()
    for text in (CLICKS, SINK, SEVEN):
        execute(parse_statement(changed(text)), session)
    statement = parse_statement(changed(insert))
    assert isinstance(statement, Insert)
    logical = optimize(binding.bind_insert(session, statement))
    root = planning.physical(session.configuration, logical)
    assert isinstance(root, p.Sink)
    none = ValuesSource(columns=(), rows=(), schema="", sequence=False)
    context = CompileContext(
        make_source=lambda _: none,
        frames={},
        zone=zone,
        parallelism=1,
        per_record=False,
        state=StateNames(ids=identities(rules), stored=after.schema if after else {}, epoch=5),
    )
    context.survey([root])
    compiled(context, lambda: compile_sink(root, context, Configuration()))
    return job_identity([root], context, "job", rules)


def check(insert: str, *changes: tuple[str, str], zone: str = "UTC") -> None:
    """StateError where the changed job may not take up what ``insert`` has left."""
    before = identity(insert)
    take_up(before, identity(insert, *changes, zone=zone, after=before))


def take_up(before: JobIdentity, after: JobIdentity) -> None:
    evolution(before, after).check("the savepoint 's'")


@pytest.mark.parametrize("insert", ALL)
@pytest.mark.parametrize(
    "change",
    [
        (" AS s", " AS other"),
        (" AS n", " AS number"),
        ("sqlite:/s", "sqlite:/elsewhere"),
        ("'1 s'", "'7 s'"),
        ("INTERVAL '5' SECOND", "INTERVAL '9' SECOND"),
        (" - INTERVAL '5' SECOND", ""),
    ],
    ids=["alias", "another alias", "sink", "monitor-interval", "delay", "no delay"],
)
def test_what_state_does_not_depend_on_may_change(insert: str, change: tuple[str, str]) -> None:
    check(insert, change)


@pytest.mark.parametrize(
    ("insert", "change", "said"),
    [
        (SUMS, ("SUM(a)", "SUM(b)"), r"s was SUM\(a\), now it is SUM\(b\)"),
        (SUMS, ("SUM(a)", "MAX(a)"), r"s was SUM\(a\), now it is MAX\(a\)"),
        (SUMS, ("GROUP BY k", "WHERE b > 1 GROUP BY k"), "where this query has"),
        (
            SUMS,
            ("k INT, a BIGINT, b BIGINT", "k INT, b BIGINT, a BIGINT"),
            r"the place of column a of table \S+clicks: 2 then, 3 now",
        ),
        (SUMS, ("'path'='/c'", "'path'='/d'"), "other options, types or time-to-live"),
        (SUMS, (", 'source.monitor-interval'='1 s'", ""), "other options, types or time-to-live"),
        (SUMS, ("k INT, a BIGINT", "k INT, a INT"), r"it has SUM\(a\) of BIGINT, now of INT"),
        (WINDOWS, ("'1' MINUTE", "'2' MINUTE"), "where this query has"),
        (
            WINDOWS,
            ("DISTINCT b", "b"),
            r"Sink.* has other options|n was COUNT\(DISTINCT b\), now it is COUNT\(b\)",
        ),
        (WINDOWS, ("ts - INTERVAL '5' SECOND", "ts - INTERVAL '1' SECOND * k"), "where this query has"),
        (RANKED, ("ORDER BY a", "ORDER BY a DESC"), "where this query has"),
        (RANKED, ("r <= 3", "r <= 4"), "it has the first 3 rows of a key, the query shows 4"),
        (RANKED, ("ROW_NUMBER", "RANK"), "where this query has"),
        (RANKED, ("PARTITION BY k", "PARTITION BY k, b"), "where this query has"),
        (RANKED, ("FROM clicks)", "FROM clicks WHERE b > 0)"), "where this query has"),
        (JOINED, ("l.a = r.b", "l.b = r.b"), "where this query has"),
        (JOINED, ("l.k > 1", "l.k > 2"), "where this query has"),
        (JOINED, ("l JOIN", "l LEFT JOIN"), "where this query has"),
        (JOINED, ("l.a = r.b", "l.a = r.b AND l.b > r.a"), "where this query has"),
        (JOINED, ("l.a = r.b", "l.a IS NOT DISTINCT FROM r.b"), "where this query has"),
        (RANKED, ("b BIGINT", "b INT"), "column 'b' is int64, the query needs int32"),
    ],
)
def test_what_changes_the_meaning_is_refused_with_the_reason(
    insert: str, change: tuple[str, str], said: str
) -> None:
    with pytest.raises(StateError, match=f"The savepoint 's' belongs to another query.*({said})"):
        check(insert, change)


def test_the_time_zone_counts_where_something_reads_it() -> None:
    check(WINDOWS, zone="America/Los_Angeles")
    instants = (
        ("ts TIMESTAMP(3)", "ts TIMESTAMP_LTZ(3)"),
        ("INTERVAL '1' MINUTE)", "INTERVAL '1' DAY)"),
    )
    before, after = (identity(WINDOWS, *instants, zone=zone) for zone in ("UTC", "America/Los_Angeles"))
    with pytest.raises(StateError, match=r"\(the time zone: UTC then, America/Los_Angeles now\)"):
        take_up(before, after)
    texts = ("SUM(a)", "SUM(UNIX_TIMESTAMP(CAST(a AS STRING)))")
    before, after = (identity(SUMS, texts, zone=zone) for zone in ("UTC", "Asia/Tokyo"))
    with pytest.raises(StateError, match="the time zone"):
        take_up(before, after)


def test_a_function_is_another_by_its_version_and_is_told_of_by_its_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = ("SUM(a)", "SUM(a + seven())")
    before, seven = identity(SUMS, calls), samples.seven
    monkeypatch.setattr(samples, "seven", replace(seven, body=lambda: 8))
    changed = identity(SUMS, calls)
    take_up(before, changed)
    assert changed_functions(before, changed) == ["seven"]
    told = [str(change) for change in evolution(before, changed).changes]
    assert told[-1] == "function seven: kept (its code has changed, its version has not)"
    monkeypatch.setattr(samples, "seven", replace(seven, version="2"))
    assert changed_functions(before, identity(SUMS, calls)) == []
    with pytest.raises(StateError, match=r"\(the version of function seven: none then, 2 now\)"):
        take_up(before, identity(SUMS, calls))


def test_the_place_of_a_column_counts_in_lines_of_text_alone() -> None:
    moved = ("a BIGINT, b BIGINT", "b BIGINT, a BIGINT")
    json = ("'csv'", "'json'")
    take_up(identity(SUMS, json), identity(SUMS, json, moved))
    last = ("SECOND)", "SECOND, c STRING)")
    check(SUMS, last)


def test_a_node_is_named_by_itself_and_not_by_its_exchange() -> None:
    texts = list(identity(SUMS, ("FROM clicks", "FROM clicks WHERE a + 1 > 2")).nodes.values())
    assert not [text for text in texts if text.startswith("Exchange")]
    assert [text for text in texts if text.startswith("Calc(") and "+(a, 1" in text]


def test_by_the_rules_of_format_3_a_job_has_the_ids_that_it_had() -> None:
    found = identity(SUMS, rules=3)
    assert found.fingerprint == identity(SUMS, rules=3).fingerprint
    assert found.fingerprint != identity(SUMS, ("sqlite:/s", "sqlite:/elsewhere"), rules=3).fingerprint
    assert found.operators.keys() != identity(SUMS).operators.keys()
