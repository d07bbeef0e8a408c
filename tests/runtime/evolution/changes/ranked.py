"""Changes of meaning of Top-N, OVER and MATCH_RECOGNIZE."""

from __future__ import annotations

from tests.runtime.evolution.changes.change import Change


def top(order: str = "a DESC", test: str = "rn <= 3", key: str = "k") -> str:
    ranked = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {order}) AS rn FROM t"
    return f"SELECT k, a, b FROM ({ranked}) WHERE {test}"


def over(call: str = "SUM(a)", key: str = "k", order: str = "ts", frame: str = "") -> str:
    return f"SELECT k, {call} OVER (PARTITION BY {key} ORDER BY {order} {frame}) AS s FROM t"


def match(
    pattern: str = "A B+ C",
    define: str = "B AS B.a > 1, C AS C.a < 1",
    *,
    skip: str = "PAST LAST ROW",
    within: str = "",
    key: str = "k",
    order: str = "ts",
    measure: str = "LAST(B.a)",
) -> str:
    return (
        f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY {key} ORDER BY {order} MEASURES {measure} AS y "
        f"ONE ROW PER MATCH AFTER MATCH SKIP {skip} PATTERN ({pattern}) {within} DEFINE {define})"
    )


HOURS = "RANGE BETWEEN INTERVAL '{}' HOUR PRECEDING AND CURRENT ROW"
ROWS = "ROWS BETWEEN {} PRECEDING AND CURRENT ROW"
FIRST, LIMITED = top("ts", "rn = 1"), "SELECT k, a FROM t ORDER BY {} LIMIT {}"
RANKED = (
    Change("the order of a Top-N", top(), top("b DESC"), r"\[a DESC\].*\[b DESC\]"),
    Change("its direction", top(), top("a ASC"), r"\[a DESC\].*\[a ASC\]"),
    Change("its place for NULL", top(), top("a DESC NULLS FIRST"), "NULLS FIRST"),
    Change("its key", top(), top(key="b"), r"partitionBy=\[k\].*partitionBy=\[b\]"),
    Change("one more column of its key", top(), top(key="k, b"), r"partitionBy=\[k, b\]"),
    Change("a larger N", top(), top(test="rn <= 5"), "has the first 3 rows of a key, the query shows 5"),
    Change("an N that a column has", top(), top(test="rn <= a"), r"<=\(w0\$o0, a\)"),
    Change("the last row", FIRST, top("ts DESC", "rn = 1"), r"ROWTIME ts ASC.*ROWTIME ts DESC"),
    Change("the key of the first row", FIRST, top("ts", "rn = 1", "b"), r"partitionBy=\[b\]"),
    Change("the time of the first row", FIRST, top("p", "rn = 1"), r"\[ROWTIME ts ASC\].*\[p ASC\]"),
    Change("Top-N to the first row", top(), FIRST, r"rankEnd=3.*rankEnd=1"),
    Change("LIMIT", LIMITED.format("a", 3), LIMITED.format("a", 5), "has the first 3 rows"),
    Change("OFFSET", LIMITED.format("a", 3), LIMITED.format("a", 3) + " OFFSET 1", "the query shows 4"),
    Change("ORDER BY", LIMITED.format("a", 3), LIMITED.format("b", 3), "where this query has SortLimit"),
    Change(
        "fewer rows below an aggregation",
        f"SELECT COUNT(*) AS n FROM ({top()})",
        f"SELECT COUNT(*) AS n FROM ({top(test='rn <= 2')})",
        "rankEnd=3.*rankEnd=2",
    ),
    Change(
        "later rows below an aggregation",
        f"SELECT COUNT(*) AS n FROM ({top()})",
        f"SELECT COUNT(*) AS n FROM ({top(test='rn BETWEEN 2 AND 3')})",
        "rankStart=1.*rankStart=2",
    ),
    Change("a call of OVER by time", over(), over("MAX(a)"), r"SUM\(a\) AS .*MAX\(a\) AS"),
    Change("its argument", over(), over("SUM(b)"), r"SUM\(a\) AS .*SUM\(b\) AS"),
    Change("the key of OVER", over(), over(key="b"), r"partitionBy=\[k\].*partitionBy=\[b\]"),
    Change("a frame", over(frame=HOURS.format(1)), over(frame=HOURS.format(2)), "3600000.*7200000"),
    Change("a frame of rows", over(frame=HOURS.format(1)), over(frame=ROWS.format(2)), "RANGE.*ROWS"),
    Change("more rows of a frame", over(frame=ROWS.format(2)), over(frame=ROWS.format(3)), r"2 PRE.*3 PRE"),
    Change("no frame", over(frame=HOURS.format(1)), over(), "3600000 PRECEDING.*UNBOUNDED PRECEDING"),
    Change("the time of OVER", over(), over(order="p"), r"orderBy=\[ts ASC\].*orderBy=\[p ASC\]"),
    Change("the order of OVER", over(order="a"), over(order="b"), "b is NULL .*, and rows are ordered by it"),
    Change(
        "a call of OVER below a key",
        f"SELECT s, COUNT(*) AS n FROM ({over(order='a')}) GROUP BY s",
        f"SELECT s, COUNT(*) AS n FROM ({over('MAX(a)', order='a')}) GROUP BY s",
        r"its GroupAggregate\(groupBy=\[s\]",
    ),
    Change("a pattern", match(), match("A B* C"), "B', 1, -1.*B', 0, -1"),
    Change("a longer pattern", match(), match("A B+ C D"), "'C'.*'D'"),
    Change("DEFINE", match(), match(define="B AS B.a > 2, C AS C.a < 1"), r"0\), 1\), C.*0\), 2\), C"),
    Change("AFTER MATCH", match(), match(skip="TO NEXT ROW"), "PAST LAST ROW.*TO NEXT ROW"),
    Change("WITHIN", match(), match(within="WITHIN INTERVAL '1' HOUR"), r"query has .*within=\[3600000"),
    Change(
        "another WITHIN",
        match(within="WITHIN INTERVAL '1' HOUR"),
        match(within="WITHIN INTERVAL '2' HOUR"),
        "3600000.*7200000",
    ),
    Change("the key of a pattern", match(), match(key="b"), r"partitionBy=\[k\].*partitionBy=\[b\]"),
    Change("the order of a pattern", match(), match(order="p"), r"orderBy=\[ts ASC\].*orderBy=\[p ASC\]"),
    Change(
        "a measure below a sum",
        f"SELECT k, SUM(y) AS n FROM ({match()}) GROUP BY k",
        f"SELECT k, SUM(y) AS n FROM ({match(measure='FIRST(B.b)')}) GROUP BY k",
        r"n was SUM\(y\), now it is another SUM\(y\)",
    ),
)
