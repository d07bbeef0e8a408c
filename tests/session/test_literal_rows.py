"""Queries whose rows stand in their text: they are answered without Spark, in both modes, as Spark would."""

from __future__ import annotations

from typing import Any

import pytest

from tests.session.environments import ask, new_session
from tidemill.errors import ValidationError
from tidemill.session import execution

BIGGEST = 2**63 - 1


class SparkAsked(Exception):
    pass


def _no_spark(_: object) -> None:
    raise SparkAsked


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_rows_as_they_stand_need_no_spark(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "spark_application", _no_spark)
    session = new_session(execution__runtime_mode=mode)
    expected: dict[str, list[tuple[Any, ...]]] = {
        "SELECT 1": [(1,)],
        "SELECT * FROM (VALUES (1, 'a'), (2, 'bcd'), (1, 'a')) AS v(n, s)": [(1, "a"), (2, "bcd"), (1, "a")],
        "SELECT s, 7, n, s FROM (VALUES (1, 'it''s \\n'), (2, 'ü')) AS v(n, s)": [
            ("it's \\n", 7, 1, "it's \\n"),
            ("ü", 7, 2, "ü"),
        ],
        f"VALUES (TRUE, NULL, CAST(NULL AS STRING), {BIGGEST}), (FALSE, 'x', NULL, -3)": [
            (True, None, None, BIGGEST),
            (False, "x", None, -3),
        ],
    }
    for sql, rows in expected.items():
        result = session.execute_sql(sql)
        assert [tuple(row) for row in result.collect()] == rows
        assert result.changelog is (mode == "streaming")
    for computed in (
        "SELECT 1 + 1",
        "SELECT DATE '2020-01-01'",
        "SELECT n FROM (VALUES (1)) AS v(n) WHERE n > 0",
    ):
        with pytest.raises(SparkAsked):
            ask(session, computed)
    with pytest.raises(ValidationError, match="Nowhere"):
        ask(new_session(execution__runtime_mode=mode, table__local_time_zone="Nowhere"), "SELECT 1")
