"""A query whose columns have wider types than when its state was stored gives what it would have given if
they had been so from the beginning."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from tests.runtime.changing_query import CLICKS, ChangingQuery, Row, session
from tidemill.changelog.watermarks import END
from tidemill.errors import StateError
from tidemill.session.context import SessionContext

CDC = (
    "CREATE TABLE clicks (k INT, a BIGINT, b BIGINT, f BOOLEAN, ts TIMESTAMP(3)) "
    "WITH ('connector'='filesystem', 'path'='/c', 'format'='debezium-json')"
)
TYPES = {"INT": pa.int32(), "BIGINT": pa.int64()}
RANKED = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {}) AS rn FROM clicks) WHERE rn <= {}"
CALLS = (
    "COUNT(*), SUM(a), AVG(a), MIN(a), MAX(b)",
    "COUNT(DISTINCT a), SUM(DISTINCT a), COUNT(DISTINCT a) FILTER (WHERE f)",
    "FIRST_VALUE(a), LAST_VALUE(b)",
    "VAR_POP(a), STDDEV_SAMP(b)",
    "JSON_ARRAYAGG(a), LISTAGG(CAST(b AS STRING))",
)
GROUPED = [f"SELECT k, {calls} FROM clicks GROUP BY k" for calls in CALLS]
SHOWN = [
    *GROUPED,
    "SELECT DISTINCT k, a FROM clicks",
    f"SELECT k, a, b FROM {RANKED.format('a DESC', 2)}",
    f"SELECT k, a, rn FROM {RANKED.format('b', 3)}",
    "SELECT k, a, SUM(a) OVER (PARTITION BY k ORDER BY b) FROM clicks",
]
WINDOWS = [
    f"SELECT k, {calls} FROM clicks GROUP BY k, {window}(ts, {sizes})"
    for window, sizes in (
        ("TUMBLE", "INTERVAL '0.010' SECOND"),
        ("HOP", "INTERVAL '0.005' SECOND, INTERVAL '0.010' SECOND"),
        ("SESSION", "INTERVAL '0.002' SECOND"),
    )
    for calls in CALLS
]
APPENDED = [
    *WINDOWS,
    f"SELECT k, a, ts FROM {RANKED.format('ts DESC', 1)}",
]
REFUSED = {
    "SELECT k, COLLECT(a) FROM clicks GROUP BY k": "it has COLLECT.a. of INT, now of BIGINT",
    "SELECT k, ARRAY_AGG(a) FROM clicks GROUP BY k": "it has ARRAY_AGG.a. of INT, now of BIGINT",
    f"SELECT k, a, ts FROM {RANKED.format('ts', 1)}": "is laid out in another way",
    "SELECT k, SUM(a) OVER (PARTITION BY k ORDER BY ts) FROM clicks": "is laid out in another way",
}


def output(query: ChangingQuery, rows: list[Row], watermark: int) -> Counter[str]:
    return Counter(map(str, query.epoch(rows, watermark=watermark)))


def contexts(text: str) -> dict[str, SessionContext]:
    """With all numbers of one type."""
    same = text.replace("BIGINT", "INT")
    return {kind: session(same.replace("INT", kind)) for kind in TYPES}


@pytest.mark.parametrize(
    ("sql", "changes"), [*((sql, False) for sql in (*SHOWN, *APPENDED)), *((sql, True) for sql in SHOWN)]
)
def test_wider_types_are_as_if_they_had_always_been(tmp_path: Path, sql: str, changes: bool) -> None:
    chance, seen = random.Random(sql), list[Row]()
    sessions = contexts(CDC if changes else CLICKS)
    narrow, wide = ChangingQuery(tmp_path / "narrow"), ChangingQuery(tmp_path / "wide")
    for number in range(4):
        kind = "BIGINT" if number > 1 else "INT"
        for query, own in ((narrow, kind), (wide, "BIGINT")):
            query.types = dict.fromkeys("kab", TYPES[own])
            if query is narrow or not number:
                query.context = sessions[own]
                query.start(sql)
        came = [
            {
                "k": chance.choice([None, 1, 2]),
                "a": chance.choice([None, -7, 3, 4, 5]),
                "b": chance.choice([1, 2, 1 << 40 if number > 1 else 9]),
                "f": chance.choice([True, False, None]),
                "ts": number * 8 + chance.randrange(12),
            }
            for _ in range(6)
        ]
        gone = [{**seen.pop(0), "kind": 3}] if changes and seen else []
        seen += came
        end = END if number == 3 else number * 8
        wanted, found = (output(query, [*gone, *came], end) for query in (wide, narrow))
        assert found == wanted


@pytest.mark.parametrize("sql", REFUSED)
def test_what_cannot_be_converted_is_refused(tmp_path: Path, sql: str) -> None:
    sessions, query = contexts(CLICKS), ChangingQuery(tmp_path)
    for number, kind in enumerate(TYPES):
        query.number, query.context = number, sessions[kind]
        if not number:
            query.start(sql)
    with pytest.raises(StateError, match=f"belongs to another query .*{REFUSED[sql]}"):
        query.start(sql)
