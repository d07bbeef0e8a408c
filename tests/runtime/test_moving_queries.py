"""Queries that answer otherwise when they run again over the same rows are refused by name."""

from __future__ import annotations

import pytest

from tests.runtime.evolution.changing_query import CLICKS, session
from tidemill.errors import NotSupportedError
from tidemill.plan.optimizer import optimize
from tidemill.runtime.replay.clock import refuse_moving
from tidemill.session import binding, planning
from tidemill.sql.parser import parse_statement
from tidemill.sql.statements import Query

TUMBLED = "TUMBLE(TABLE clicks, DESCRIPTOR({}), INTERVAL '1' SECOND)"


def check(sql: str, *tables: str, **options: str) -> None:
    context = session(*tables, **options)
    statement = parse_statement(sql)
    assert isinstance(statement, Query)
    logical = optimize(binding.bind(context, statement))
    root = planning.physical(context.configuration, logical)
    refuse_moving([root], context.configuration, "VERIFY JOB")


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT k, SUM(a) AS s FROM clicks WHERE RAND() < 0.5 GROUP BY k", "RAND"),
        ("SELECT k, CASE WHEN a > 1 THEN UUID() ELSE 'x' END AS u FROM clicks", "UUID"),
        (
            "SELECT k, COUNT(*) FILTER (WHERE ts < LOCALTIMESTAMP) AS n FROM clicks GROUP BY k",
            "LOCALTIMESTAMP",
        ),
    ],
)
def test_chance_and_the_clock_are_named(sql: str, named: str) -> None:
    with pytest.raises(NotSupportedError, match=f"VERIFY JOB is not supported: {named} gives another answer"):
        check(sql)


def test_options_by_the_clock_are_named() -> None:
    counted = "SELECT k, COUNT(*) AS n FROM clicks GROUP BY k"
    windowed = (
        f"SELECT k, COUNT(*) AS n FROM TABLE({TUMBLED.format('ts')}) GROUP BY k, window_start, window_end"
    )
    check(counted)
    check(windowed)
    with pytest.raises(NotSupportedError, match="state that expires"):
        check(counted, table__exec__state__ttl="1 h")
    early = {"table.exec.emit.early-fire.enabled": "true", "table.exec.emit.early-fire.delay": "1 s"}
    with pytest.raises(NotSupportedError, match="what a window shows by the clock"):
        check(windowed, **early)
    at_once = {**early, "table.exec.emit.early-fire.delay": "0 s"}
    check(windowed, **at_once)
    with pytest.raises(NotSupportedError, match=r"table\.exec\.source\.idle-timeout"):
        check(windowed, **{"table.exec.source.idle-timeout": "1 s"})
    idle = CLICKS.replace("WITH (", "WITH ('scan.watermark.idle-timeout'='1 s', ")
    with pytest.raises(NotSupportedError, match=r"scan\.watermark\.idle-timeout"):
        check(windowed, idle)


def test_processing_time_is_named() -> None:
    clicks = CLICKS.replace("WATERMARK FOR ts AS ts", "p AS PROCTIME()")
    windowed = (
        f"SELECT k, COUNT(*) AS n FROM TABLE({TUMBLED.format('p')}) GROUP BY k, window_start, window_end"
    )
    with pytest.raises(NotSupportedError, match=r"PROCTIME|processing time"):
        check(windowed, clicks)


def test_tables_that_are_asked_as_of_now_are_named() -> None:
    clicks = CLICKS.replace("WATERMARK FOR ts AS ts", "p AS PROCTIME()")
    names = "CREATE TABLE names (k INT, n STRING) WITH ('connector'='jdbc', 'url'='jdbc:sqlite:/x', "
    names += "'table-name'='t')"
    sql = "SELECT c.k, n.n FROM clicks AS c JOIN names FOR SYSTEM_TIME AS OF c.p AS n ON c.k = n.k"
    with pytest.raises(NotSupportedError, match=r"asks a table as of now|PROCTIME"):
        check(sql, clicks, names)
