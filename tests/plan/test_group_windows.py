"""What group windows tell of themselves, as Flink types it."""

from __future__ import annotations

import pytest

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.operators.window.assigners.kind import WindowKind
from tidemill.operators.window.assigners.tumble import Tumble
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


@pytest.mark.parametrize(
    "form",
    [
        "SELECT COUNT(*) AS c FROM t GROUP BY CUMULATE(ts, INTERVAL '{}' {}, INTERVAL '2' {})",
        "SELECT COUNT(*) AS c FROM TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '{}' {},"
        " INTERVAL '2' {})) GROUP BY window_start, window_end",
    ],
)
def test_lengths_that_an_assigner_refuses_are_an_error_of_the_call(made: TableEnvironment, form: str) -> None:
    """Also in a view, which does not run."""
    assert described(made, form.format(2, "MINUTE", "MINUTE")) == [("c", "BIGINT", False)]
    for unit, text in (
        ("MINUTE", "step 180000 and size 120000.*milliseconds"),
        ("YEAR", "step 36 and size 24.*months"),
    ):
        view = f"CREATE TEMPORARY VIEW w AS {form.format(3, unit, unit)}"
        with pytest.raises(ValidationError, match=f"(?s)not longer than its size, but got {text}") as raised:
            made.execute_sql(view)
        assert raised.value.position is not None
        assert view[raised.value.position.column - 1 :].startswith("CUMULATE(")


def test_windows_by_the_clock_need_a_size() -> None:
    """Mini-batches wait for multiples of the lengths."""
    with pytest.raises(ValueError, match=r"WEEKLY: .* require \['SIZE'\]"):
        WindowKind(name="WEEKLY", parameters=(), required=0, grouped=(), explained=(), cut=Tumble.of)
