"""What group windows tell of themselves, as Flink types it."""

from __future__ import annotations

import pytest

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.session.environment import TableEnvironment

_WINDOWS = {
    "TUMBLE": "INTERVAL '10' SECOND",
    "HOP": "INTERVAL '5' SECOND, INTERVAL '10' SECOND",
    "SESSION": "INTERVAL '10' SECOND",
    "CUMULATE": "INTERVAL '5' SECOND, INTERVAL '10' SECOND",
}


@pytest.fixture
def made() -> TableEnvironment:
    environment = TableEnvironment.create({})
    for name, null in (("t", ""), ("never_null", "NOT NULL")):
        environment.execute_sql(
            f"CREATE TABLE {name} (ts TIMESTAMP(3) {null}, pt AS PROCTIME(), WATERMARK FOR ts AS ts)"
            " WITH ('connector' = 'datagen')"
        )
    return environment


def described(made: TableEnvironment, query: str) -> list[tuple[str, str, bool]]:
    made.execute_sql("DROP TEMPORARY VIEW IF EXISTS v")
    made.execute_sql(f"CREATE TEMPORARY VIEW v AS {query}")
    with made.execute_sql("DESCRIBE v").collect() as rows:
        return [tuple(row)[:3] for row in rows]


@pytest.mark.parametrize("kind", _WINDOWS)
def test_the_time_of_a_window_may_be_null_as_that_of_its_rows_may(made: TableEnvironment, kind: str) -> None:
    call = f"{kind}{{}}({{}}, {_WINDOWS[kind]})"
    for table, null in (("t", True), ("never_null", False)):
        asked = ", ".join(f"{call.format(role, 'ts')} AS {role[1:]}x" for role in ("_START", "_ROWTIME"))
        query = f"SELECT {asked} FROM {table} GROUP BY {call.format('', 'ts')}"
        assert described(made, query) == [
            ("STARTx", "TIMESTAMP(3)", False),
            ("ROWTIMEx", "TIMESTAMP(3) *ROWTIME*", null),
        ]


def test_only_a_window_by_the_clock_has_a_time_by_the_clock(made: TableEnvironment) -> None:
    asked = "SELECT TUMBLE_PROCTIME({0}, {1}) AS p FROM t GROUP BY TUMBLE({0}, {1})"
    by = _WINDOWS["TUMBLE"]
    assert described(made, asked.format("pt", by)) == [("p", "TIMESTAMP_LTZ(3) *PROCTIME*", False)]
    assert described(made, asked.format("ts", by)) == [("p", "TIMESTAMP(3) *ROWTIME*", True)]


def test_a_time_in_the_place_of_an_offset_is_an_alignment(made: TableEnvironment) -> None:
    with pytest.raises(NotSupportedError, match="TUMBLE window with alignment is not supported"):
        described(
            made, "SELECT COUNT(*) AS c FROM t GROUP BY TUMBLE(ts, INTERVAL '10' SECOND, TIME '00:00:03')"
        )


def test_a_step_is_not_longer_than_its_size(made: TableEnvironment) -> None:
    asked = (
        "SELECT COUNT(*) AS c FROM TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '{}' MINUTE,"
        " INTERVAL '2' MINUTE)) GROUP BY window_start, window_end"
    )
    assert described(made, asked.format(2)) == [("c", "BIGINT", False)]
    with pytest.raises(ValidationError, match="got step 180000ms and size 120000ms"):
        described(made, asked.format(3))
