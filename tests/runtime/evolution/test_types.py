"""A query whose columns have wider types than when its state was stored gives what it would have given if
they had been so from the beginning."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.runtime.evolution.changing_query import CLICKS, ChangingQuery, Row, session
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
    f"SELECT k, a, ts FROM {RANKED.format('ts', 1)}",
    "SELECT k, a, SUM(a) OVER (PARTITION BY k ORDER BY ts) FROM clicks",
    "SELECT k, SUM(a) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM clicks",
    f"SELECT k, a, ts FROM {RANKED.format('ts DESC', 1)}",
]
REFUSED = {
    "SELECT k, COLLECT(a) FROM clicks GROUP BY k": "it has COLLECT.a. of INT, now of BIGINT",
    "SELECT k, ARRAY_AGG(a) FROM clicks GROUP BY k": "it has ARRAY_AGG.a. of INT, now of BIGINT",
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


VALUE_CALLS = ("COUNT(*), COUNT(a), MIN(a), MAX(a)", "COUNT(DISTINCT a)", "FIRST_VALUE(a), LAST_VALUE(a)")
SUMS = ("SUM(a)", "AVG(a), COUNT(a)", "SUM(DISTINCT a)", "VAR_POP(a), STDDEV_SAMP(a)")
KEPT = [
    f"SELECT k, a FROM {RANKED.format('a DESC', 2)}",
    f"SELECT k, a, rn FROM {RANKED.format('b', 3)}",
    f"SELECT k, a, ts FROM {RANKED.format('ts DESC', 1)}",
    "SELECT k, a, MAX(a) OVER (PARTITION BY k ORDER BY b) FROM clicks",
]
WIDER: dict[tuple[str, str], tuple[Any, list[Any]]] = {
    ("FLOAT", "DOUBLE"): (pa.float32(), [0.1, -0.0, 1e10, 2.5]),
    ("DECIMAL(5, 2)", "DECIMAL(9, 4)"): (pa.decimal128(5, 2), ["1.20", "-999.99", "0.00", "7.01"]),
    ("CHAR(3)", "VARCHAR(5)"): (pa.string(), ["a", "abc", "", "b "]),
    ("VARCHAR(3)", "STRING"): (pa.string(), ["a", "abc", "", "b "]),
}
WIDEST = {"DOUBLE": pa.float64(), "DECIMAL(9, 4)": pa.decimal128(9, 4)}


def of_type(text: str, kind: str, key: str = "INT") -> SessionContext:
    """A table whose column ``a`` has another type, and ``k`` has the type ``key``."""
    return session(text.replace("a BIGINT", f"a {kind}").replace("k INT", f"k {key}"))


def of(kind: pa.DataType, values: list[Any], wide: pa.DataType) -> list[Any]:
    """The values as a column of ``kind`` gives them, as those of a column of the type ``wide``."""
    exact = [Decimal(v) if pa.types.is_decimal(kind) else v for v in values]
    return list(pa.array(exact, kind).cast(wide).to_pylist())


WIDENED = [
    *(f"SELECT k, {calls} FROM clicks GROUP BY k" for calls in (*VALUE_CALLS, *SUMS)),
    *(
        f"SELECT k, {calls} FROM clicks GROUP BY k, {window}"
        for window, calls in (
            ("TUMBLE(ts, INTERVAL '0.010' SECOND)", "COUNT(*), MAX(a), MIN(a)"),
            ("HOP(ts, INTERVAL '0.005' SECOND, INTERVAL '0.010' SECOND)", "SUM(a)"),
            ("SESSION(ts, INTERVAL '0.002' SECOND)", "COUNT(DISTINCT a), MAX(a)"),
        )
    ),
    *KEPT,
]


def adds_up(sql: str, kind: pa.DataType) -> bool:
    """Whether values of ``kind`` have the sums that ``sql`` asks for."""
    is_number = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return is_number or not any(call in sql for call in SUMS)


@pytest.mark.parametrize(
    ("sql", "pair"),
    [(sql, pair) for pair, (kind, _) in WIDER.items() for sql in WIDENED if adds_up(sql, kind)],
)
def test_values_of_other_types_that_hold_them_all(tmp_path: Path, sql: str, pair: tuple[str, str]) -> None:
    kind, values = WIDER[pair]
    types = {pair[0]: kind, pair[1]: WIDEST.get(pair[1], kind)}
    chance, sessions = random.Random(sql), {kind: of_type(CLICKS, kind) for kind in pair}
    narrow, wide = ChangingQuery(tmp_path / "narrow"), ChangingQuery(tmp_path / "wide")
    exact = of(kind, values, types[pair[1]])
    for number in range(4):
        now = pair[number > 1]
        for query, own in ((narrow, now), (wide, pair[1])):
            query.types = {"a": types[own]}
            if query is narrow or not number:
                query.context = sessions[own]
                found = query.start(sql)
        came = [
            {
                "k": chance.choice([None, 1, 2]),
                "a": chance.choice([None, *exact]),
                "b": chance.choice([1, 2, 9]),
                "f": True,
                "ts": number * 8 + chance.randrange(12),
            }
            for _ in range(6)
        ]
        end = END if number == 3 else number * 8
        got, wanted = output(narrow, came, end), output(wide, came, end)
        # Before, results have the narrower type.
        assert number < 2 or got == wanted
        if number == 2 and not pa.types.is_string(kind):
            assert found is not None
            assert "converted" in {c.verdict.value for c in found.changes}


@pytest.mark.parametrize("pair", [("CHAR(3)", "VARCHAR(5)"), ("VARCHAR(3)", "STRING")])
def test_texts_of_keys_and_filters(tmp_path: Path, pair: tuple[str, str]) -> None:
    sql = "SELECT k, MAX(b), COUNT(*) FROM clicks WHERE k <> 'b' GROUP BY k"
    query = ChangingQuery(tmp_path, of_type(CLICKS, "BIGINT", pair[0]), types={"k": pa.string()})
    query.start(sql)
    assert query.epoch([{"k": "a", "b": 1}, {"k": "ab", "b": 2}])
    query.context = of_type(CLICKS, "BIGINT", pair[1])
    query.start(sql)
    assert query.epoch([{"k": "a", "b": 0}]) == [(1, ("a", 1, 1)), (2, ("a", 1, 2))]


@pytest.mark.parametrize(
    ("sql", "pair", "why"),
    [
        # What is compared, computed or hashed is another number.
        ("SELECT a, COUNT(*) FROM clicks GROUP BY a", ("FLOAT", "DOUBLE"), "other options, types|columns"),
        (
            "SELECT k, COUNT(*) FROM clicks WHERE a > b GROUP BY k",
            ("DECIMAL(5, 2)", "DECIMAL(9, 4)"),
            r">\(a, b\).* has other options, types",
        ),
        (
            "SELECT k, MAX(a + 1) AS m FROM clicks GROUP BY k",
            ("FLOAT", "DOUBLE"),
            r"m was MAX\(\+\(a, .*, now it is MAX\(\+\(a, ",
        ),
        # What has fewer digits before the point, or fewer letters.
        (
            "SELECT k, MAX(a) AS m FROM clicks GROUP BY k",
            ("DECIMAL(5, 2)", "DECIMAL(6, 4)"),
            r"is decimal128\(5, 2\), the query needs decimal128\(6, 4\)",
        ),
        (
            "SELECT k, MAX(a) AS m FROM clicks GROUP BY k",
            ("CHAR(3)", "VARCHAR(2)"),
            r"of CHAR\(3\), now of VARCHAR\(2\)",
        ),
        (
            "SELECT k, MAX(a) AS m FROM clicks GROUP BY k",
            ("DOUBLE", "FLOAT"),
            "is double, the query needs float",
        ),
        # Texts of numbers.
        (
            "SELECT k, JSON_ARRAYAGG(a) AS m FROM clicks GROUP BY k",
            ("FLOAT", "DOUBLE"),
            "m was JSON_ARRAYAGG",
        ),
    ],
)
def test_what_is_not_exact_is_refused(tmp_path: Path, sql: str, pair: tuple[str, str], why: str) -> None:
    query = ChangingQuery(tmp_path)
    for number, kind in enumerate(pair):
        query.number, query.context = number, of_type(CLICKS, kind)
        if not number:
            query.start(sql)
    with pytest.raises(StateError, match=f"belongs to another query .*({why})"):
        query.start(sql)


@pytest.mark.parametrize("pair", [("FLOAT", "DOUBLE"), ("DECIMAL(5, 2)", "DECIMAL(9, 4)")])
@pytest.mark.parametrize(
    "sql", ["SELECT k, SUM(a) FROM clicks GROUP BY k", f"SELECT k, a FROM {RANKED.format('b', 3)}"]
)
def test_rows_that_are_taken_back_have_the_numbers_that_came(
    tmp_path: Path, sql: str, pair: tuple[str, str]
) -> None:
    """A source's 0.1 is another number as DOUBLE than as FLOAT, so it would not be found again."""
    query = ChangingQuery(tmp_path, of_type(CDC, pair[0]))
    query.start(sql)
    query.number, query.context = 1, of_type(CDC, pair[1])
    with pytest.raises(StateError, match=r"belongs to another query .*takes rows back.* by other digits"):
        query.start(sql)


@pytest.mark.parametrize("pair", WIDER)
@pytest.mark.parametrize(
    "kind",
    ["r ON l.k = r.k", "r ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '0.004' SECOND AND r.ts"],
)
def test_columns_of_joins(tmp_path: Path, kind: str, pair: tuple[str, str]) -> None:
    arrow, values = WIDER[pair]
    types = {pair[0]: arrow, pair[1]: WIDEST.get(pair[1], arrow)}
    own, sql = CLICKS.replace("a BIGINT", "a {}"), f"SELECT l.k, l.a, r.a, r.b FROM l LEFT JOIN {kind}"
    sessions = {k: session(*(own.format(k).replace("clicks", side, 1) for side in "lr")) for k in pair}
    chance = random.Random(kind)
    narrow, wide = ChangingQuery(tmp_path / "narrow"), ChangingQuery(tmp_path / "wide")
    exact = of(arrow, values, types[pair[1]])
    for number in range(3):
        for query, now in ((narrow, pair[number > 0]), (wide, pair[1])):
            query.types = {"a": types[now], "a0": types[now]}
            if query is narrow or not number:
                query.context = sessions[now]
                query.start(sql)
        came = [
            [
                {"k": chance.choice([1, 2]), "a": v, "b": number, "ts": number * 4 + chance.randrange(6)}
                for v in exact
            ]
            for _ in range(2)
        ]
        mark = END if number == 2 else number * 2
        got, wanted = (Counter(map(str, q.epoch(*came, watermark=mark))) for q in (narrow, wide))
        assert not number or got == wanted


def test_sums_of_decimals_that_outgrow_their_digits(tmp_path: Path) -> None:
    """With more digits behind the point there are fewer before it: a sum is NULL while it has more, and what
    it is stays exact."""
    sql = "SELECT k, SUM(a), COUNT(*) FROM clicks GROUP BY k"
    query = ChangingQuery(tmp_path)
    for kind in ("DECIMAL(36, 0)", "DECIMAL(38, 2)"):
        arrow = pa.decimal128(*map(int, kind[8:-1].split(", ")))
        query.context, query.types = of_type(CLICKS, kind), {"a": arrow}
        query.start(sql)
        if not query.number:
            largest = Decimal("9" * 36)
            query.epoch([{"k": 1, "a": largest}, {"k": 1, "a": Decimal(100)}, {"k": 2, "a": Decimal(-7)}])
    less = Decimal("-" + "9" * 35 + ".75")
    (gone, came) = query.epoch([{"k": 1, "a": less}])
    assert gone == (1, (1, None, 2))
    assert came == (2, (1, Decimal("9" + "0" * 33 + "99.25"), 3))
    assert query.epoch([{"k": 2, "a": Decimal("0.25")}])[1] == (2, (2, Decimal("-6.75"), 2))
