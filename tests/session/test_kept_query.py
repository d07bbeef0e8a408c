"""What a job's record keeps of its INSERTs, and the session that is made of it again. Without Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.session.environments import new_session
from tidemill import udf
from tidemill.errors import StateError
from tidemill.plan.optimizer import optimize
from tidemill.session import binding
from tidemill.session.environment import TableEnvironment
from tidemill.session.jobs.kept_query import former_session, kept_query
from tidemill.sql.parser import parse_statement
from tidemill.sql.statements import Insert

SINK = (
    "CREATE TABLE s (k INT, v STRING) WITH ('connector'='jdbc', 'table-name'='s', "
    "'url'='{}', 'password'='{}')"
)
QUERY = "INSERT INTO s SELECT k, v FROM few WHERE k > 1"


def session(url: str = "jdbc:postgresql://u:xyzzy@h/d", password: str = "xyzzy") -> TableEnvironment:
    made = new_session(table__local_time_zone="Asia/Tokyo", pipeline__name="mine")
    for statement in (
        "CREATE DATABASE d",
        "USE d",
        SINK.format(url, password),
        "CREATE TABLE t (k INT, v STRING) WITH ('connector'='datagen')",
        "CREATE VIEW few AS SELECT * FROM t WHERE k < 9",
        "CREATE TABLE unused (k INT) WITH ('connector'='datagen')",
    ):
        made.execute_sql(statement)
    return made


def inserts(*texts: str) -> list[Insert]:
    found = [parse_statement(text) for text in texts]
    return [insert for insert in found if isinstance(insert, Insert)]


def kept(made: TableEnvironment, *texts: str) -> dict[str, Any]:
    return kept_query(made.context, inserts(*texts))


def test_a_session_that_has_none_of_it_plans_the_same() -> None:
    made = session()
    record = kept(made, QUERY)
    assert json.loads(json.dumps(record)) == record
    assert sorted(entry["path"]["name"] for entry in record["objects"]) == ["few", "s", "t"]
    assert record["options"] == {"table.local-time-zone": "Asia/Tokyo"}
    assert "xyzzy" not in json.dumps(record)
    before = binding.bind_insert(made.context, inserts(QUERY)[0])
    made.execute_sql("DROP VIEW few")
    made.execute_sql("DROP TABLE t")
    made.execute_sql("SET 'table.local-time-zone' = 'UTC'")
    again, written = former_session(record, made.context, "the savepoint 'x'")
    assert again.time_zone == "Asia/Tokyo"
    assert again.configuration["pipeline.name"] == "mine"
    after = binding.bind_insert(again, written[0])
    assert (after.table.path, after.table.options) == (before.table.path, before.table.options)
    assert optimize(after).fields == optimize(before).fields


@pytest.mark.parametrize(
    "other",
    [
        new_session(),
        session(url="jdbc:postgresql://u:xyzzy@elsewhere/d"),
    ],
)
def test_secrets_come_from_the_same_table_alone(other: TableEnvironment) -> None:
    with pytest.raises(StateError, match=r"The savepoint 'x' keeps no secrets, and option '(url|password)'"):
        former_session(kept(session(), QUERY), other.context, "the savepoint 'x'")


def test_what_cannot_be_kept_is_said() -> None:
    made = session()
    assert kept(made) == {}
    made.create_temporary_function("f", udf(lambda v: v, result_type="STRING", input_types=["STRING"]))
    for text, why in {
        QUERY.replace("v FROM", "f(v) FROM"): "'f' is a function of this program",
        QUERY.replace("s SELECT", "s /*+ OPTIONS('password'='plugh') */ SELECT"): "its text has a secret",
    }.items():
        record = kept(made, text)
        assert why in record["lacks"]
        with pytest.raises(StateError, match=r"does not say what its query was \(.*" + why):
            former_session(record, made.context, "the savepoint 'x'")
    with pytest.raises(StateError, match="made by an earlier version"):
        former_session({}, made.context, "the savepoint 'x'")
    with pytest.raises(StateError, match="in format 9, which this version does not know"):
        former_session({**kept(made, QUERY), "format": 9}, made.context, "the savepoint 'x'")
