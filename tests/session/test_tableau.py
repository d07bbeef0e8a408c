"""Printed results, in Flink's layout."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from tidemill.changelog.rowkind import RowKind
from tidemill.session import tableau
from tidemill.session.carrier import rows_of
from tidemill.session.frames import folded, folded_pandas
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


def test_nothing_is_an_empty_set() -> None:
    assert list(tableau.stream_lines(FIELDS, [], max_width=10, zone=dt.UTC)) == ["Empty set"]
    one = list(tableau.batch_lines(FIELDS[1:], [(RowKind.INSERT, (1,))], max_width=10, zone=dt.UTC))
    assert one[-1] == "1 row in set"


def test_rows_of_an_arrow_table_have_their_kinds() -> None:
    table = pa.table({"k": ["a", "b"], "n": [1, 2], "$kind": pa.array([0, 3], pa.int8())})
    assert list(rows_of(table, 2)) == [(RowKind.INSERT, ("a", 1)), (RowKind.DELETE, ("b", 2))]
    assert list(rows_of(table.drop(["$kind"]), 1)) == [(RowKind.INSERT, ("a",)), (RowKind.INSERT, ("b",))]


def test_a_folded_changelog_is_the_final_multiset() -> None:
    twice = [*CHANGES, (RowKind.INSERT, ("b", 7)), (RowKind.INSERT, ("b", 7)), (RowKind.DELETE, (None, 5))]
    assert folded(FIELDS, twice) == [("a", 2), ("b", 7), ("b", 7)]
    frame = folded_pandas(FIELDS, twice)
    assert list(frame.columns) == ["k", "n"]
    assert frame["n"].tolist() == [2, 7, 7]
