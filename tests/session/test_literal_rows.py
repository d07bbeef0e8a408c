"""Queries whose rows stand in their text: they are answered without Spark, in both modes, as Spark would."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.session.environments import ask, new_session
from tidemill.errors import ValidationError
from tidemill.physical.nodes import Values
from tidemill.runtime.spark.batch_frames import frames
from tidemill.runtime.spark.batch_frames.values_table import values_table
from tidemill.session import execution

BIGGEST = 2**63 - 1


class SparkAsked(Exception):
    pass


def _no_spark(_: object, **options: object) -> None:
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


@pytest.mark.one_case
@pytest.mark.parametrize("others", ["", ", TIME '23:59:59'"])
def test_many_rows_are_what_a_few_are(others: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many literal rows go to Spark as data, a few as text; ``others``: a type that is always text."""
    as_data = []

    def seen(node: Values) -> pa.Table | None:
        as_data.append(values_table(node))
        return as_data[-1]

    monkeypatch.setattr(frames, "values_table", seen)
    row = (
        "({n}, -9223372036854775807, {n}.50, 1E300, 'it''s ü\\\\ {n}', x'00ff', TRUE, DATE '0001-01-01', "
        "TIMESTAMP '9999-12-31 23:59:59.999999', {maybe}{others})"
    )
    rows = [row.format(n=n % 100, maybe="NULL" if n % 2 else f"'{n}'", others=others) for n in range(600)]

    def read(texts: list[str]) -> list[str]:
        session = new_session(execution__runtime_mode="batch")
        found = session.execute_sql(f"SELECT * FROM (VALUES {', '.join(texts)}) AS v WHERE TRUE")
        return [repr(tuple(row)) for row in found.collect()]

    few = [found for start in range(0, 600, 100) for found in read(rows[start : start + 100])]
    assert not as_data
    assert read(rows) == few
    assert [table is None for table in as_data] == [bool(others)]
    assert len(few) == 600
