"""How EXPLAIN names the windows of a batch query."""

from __future__ import annotations

import re

import pytest

from tidemill.session.context import SessionContext
from tidemill.session.dispatch import execute
from tidemill.sql.parser import parse_statement

TABLE = (
    "CREATE TABLE t (k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
    "WITH ('connector'='filesystem', 'path'='/nowhere', 'format'='csv')"
)


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (
            "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)",
            "window=[TUMBLE(time_col=[ts], size=[10 s])]",
        ),
        (
            "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)",
            "window=[HOP(time_col=[ts], size=[1 h], slide=[1 min])]",
        ),
        (
            "SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECOND)",
            "window=[SESSION(time_col=[ts], gap=[5 s], partition keys=[k])], "
            "runs=[as Spark's windows over the rows of a key]",
        ),
    ],
)
def test_a_window_is_shown_with_all_that_it_says(call: str, shown: str) -> None:
    context = SessionContext()
    for text in ("SET 'execution.runtime-mode' = 'batch'", TABLE):
        execute(parse_statement(text), context)
    ((text,),) = list(execute(parse_statement(f"EXPLAIN SELECT * FROM TABLE({call})"), context).collect())
    assert isinstance(text, str)
    assert re.findall(r"WindowTableFunction\((.*)\)$", text, re.M) == [shown] * 2
