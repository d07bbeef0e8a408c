"""Printed results, in Flink's layout."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tidemill.changelog.rowkind import RowKind
from tidemill.errors import ExecutionError
from tidemill.functions.text.cast import cast
from tidemill.session.rows import tableau, values
from tidemill.session.rows.decoder import ChangelogRow, rows_of
from tidemill.session.rows.pandas_frames import folded, folded_pandas
from tidemill.types import logical as t

FIELDS = (t.Field("k", t.STRING), t.Field("n", t.BIGINT))
CHANGES = [
    (RowKind.INSERT, ("a", 1)),
    (RowKind.UPDATE_BEFORE, ("a", 1)),
    (RowKind.UPDATE_AFTER, ("a", 2)),
    (RowKind.INSERT, (None, 5)),
]


def test_a_changelog_has_an_op_column_and_widths_by_type() -> None:
    lines = list(tableau.stream_lines(FIELDS, CHANGES, max_width=10, zone=dt.UTC))
    assert lines == [
        "+----+------------+----------------------+",
        "| op |          k |                    n |",
        "+----+------------+----------------------+",
        "| +I |          a |                    1 |",
        "| -U |          a |                    1 |",
        "| +U |          a |                    2 |",
        "| +I |     <NULL> |                    5 |",
        "+----+------------+----------------------+",
        "4 rows in set",
    ]


def test_a_finished_result_has_widths_by_content() -> None:
    rows = [(RowKind.INSERT, ("a long text that is cut", 1)), (RowKind.INSERT, ("日本", 2))]
    lines = list(tableau.batch_lines(FIELDS, rows, max_width=12, zone=dt.UTC))
    assert lines == [
        "+--------------+---+",
        "|            k | n |",
        "+--------------+---+",
        "| a long te... | 1 |",
        "|         日本 | 2 |",
        "+--------------+---+",
        "2 rows in set",
    ]


def test_few_rows_of_a_finished_result_are_read_ahead_and_none_is_lost() -> None:
    read = 0

    def rows() -> Iterator[ChangelogRow]:
        nonlocal read
        for read in range(1, 5001):
            yield RowKind.INSERT, ("a wider one" if read > 4998 else "a", read)

    lines = tableau.batch_lines(FIELDS, rows(), max_width=9, zone=dt.UTC)
    assert next(lines) == "+---+------+"
    assert read == tableau.SAMPLE
    assert list(lines)[-4:] == [
        "| a wide... | 4999 |",
        "| a wide... | 5000 |",
        "+-----------+------+",
        "5000 rows in set",
    ]


def test_what_would_move_the_cursor_is_spelled_out() -> None:
    rows = [(RowKind.INSERT, ("a\nb\t\x1b[2J\u2028", 1)), (RowKind.INSERT, ("\u65e5\u00e9", 2))]
    assert list(tableau.batch_lines(FIELDS, rows, max_width=30, zone=dt.UTC))[3:5] == [
        "| a\\nb\\t\\x1b[2J\\u2028 | 1 |",
        "|                 \u65e5\u00e9 | 2 |",
    ]
    odd = (t.Field("x\ny", t.STRING),)
    assert list(tableau.stream_lines(odd, [(RowKind.INSERT, ("\r",))], max_width=6, zone=dt.UTC))[1:4:2] == [
        "| op |   x\\ny |",
        "| +I |     \\r |",
    ]
    assert list(tableau.vertical_lines(odd, [(RowKind.INSERT, ("a\n\x07",))], zone=dt.UTC, op=False))[1] == (
        "x\\ny | a\n     | \\x07"
    )


def test_nothing_is_an_empty_set() -> None:
    assert list(tableau.stream_lines(FIELDS, [], max_width=10, zone=dt.UTC)) == ["Empty set"]
    one = list(tableau.batch_lines(FIELDS[1:], [(RowKind.INSERT, (1,))], max_width=10, zone=dt.UTC))
    assert one[-1] == "1 row in set"


def test_rows_of_an_arrow_table_have_their_kinds() -> None:
    table = pa.table({"k": ["a", "b"], "n": [1, 2], "$kind": pa.array([0, 3], pa.int8())})
    assert list(rows_of(table, 2)) == [(RowKind.INSERT, ("a", 1)), (RowKind.DELETE, ("b", 2))]
    assert list(rows_of(table.drop(["$kind"]), 1)) == [(RowKind.INSERT, ("a",)), (RowKind.INSERT, ("b",))]


@pytest.mark.parametrize(
    ("kind", "carried", "said"),
    [
        (pa.date32(), 3000000, "10183-09-21 in row 2"),
        (pa.timestamp("us"), -(10**17), "-1199-02-15T14:13:20.000000 in row 2"),
        (pa.timestamp("us", "UTC"), 10**18, "33658-09-27T01:46:40.000000 in row 2"),
    ],
)
def test_a_time_that_python_cannot_hold_is_named(kind: pa.DataType, carried: int, said: str) -> None:
    numbers = pa.array([0, carried], pa.int32() if kind == pa.date32() else pa.int64())
    table = pa.table({"a": ["x", "y"], "far": numbers.cast(kind)})
    with pytest.raises(ExecutionError, match=f"Column 'far'.*years 1 to 9999.*: {said}"):
        list(rows_of(table, 2))
    assert len(list(rows_of(table, 1))) == 2
    nested = pa.table({"many": pa.ListArray.from_arrays([0, 1, 2], numbers.cast(kind))})
    with pytest.raises(ExecutionError, match=r"Column 'many'.*: row 2\n"):
        list(rows_of(nested, 1))


def test_rows_come_before_all_of_them_are_python_objects() -> None:
    times = pa.array([0] * 5000 + [3000000], pa.int32()).cast(pa.date32())
    rows = rows_of(pa.table({"far": times}), 1)
    assert next(rows) == (RowKind.INSERT, (dt.date(1970, 1, 1),))
    with pytest.raises(ExecutionError, match="10183-09-21 in row 5001"):
        list(rows)
    many = pa.table({"n": range(10_000), "$kind": pa.array([0, 3] * 5000, pa.int8())})
    assert [(kind.value, n) for kind, (n,) in rows_of(many, 1)] == [(n % 2 * 3, n) for n in range(10_000)]
    assert len(list(rows_of(many, 0))) == 10_000


def test_an_interval_that_python_cannot_hold_is_an_error() -> None:
    kind = t.DayTimeIntervalType()
    assert values.python_value(kind, 1500) == dt.timedelta(seconds=1.5)
    with pytest.raises(ExecutionError, match="9000000000000000000 ms"):
        values.python_value(kind, 9 * 10**18)


def test_a_time_at_the_end_of_the_years_is_an_error_in_a_zone_where_it_is_behind() -> None:
    kind, end = t.LocalZonedTimestampType(precision=0), dt.datetime(9999, 12, 31, 23, 30)
    assert cast(kind, dt.UTC)(end) == "9999-12-31 23:30:00"
    with pytest.raises(ExecutionError, match="9999-12-31"):
        cast(kind, dt.timezone(dt.timedelta(hours=2)))(end)


def test_a_folded_changelog_is_the_final_multiset() -> None:
    twice = [*CHANGES, (RowKind.INSERT, ("b", 7)), (RowKind.INSERT, ("b", 7)), (RowKind.DELETE, (None, 5))]
    assert folded(FIELDS, twice) == [("a", 2), ("b", 7), ("b", 7)]
    frame = folded_pandas(FIELDS, twice)
    assert list(frame.columns) == ["k", "n"]
    assert frame["n"].tolist() == [2, 7, 7]
