"""Changes of meaning of aggregations."""

from __future__ import annotations

from tests.runtime.evolution.changes.change import Change, same


def by_k(calls: str, rest: str = "") -> str:
    return f"SELECT k, {calls} FROM t {rest} GROUP BY k"


SUM = by_k("SUM(a) AS s")
TWO_KEYS = "SELECT k, b, SUM(a) AS s FROM t GROUP BY {}"
COUNTED = "(SELECT k, {} AS n FROM t GROUP BY k)"
EXPIRES = {"table.exec.state.ttl": "1 h"}
AGGREGATIONS = (
    Change("another argument", SUM, by_k("SUM(b) AS s"), r"s was SUM\(a\), now it is SUM\(b\)"),
    Change("MIN to MAX", by_k("MIN(a) AS s"), by_k("MAX(a) AS s"), r"s was MIN\(a\), now it is MAX"),
    Change("a call without a name", by_k("SUM(a)"), by_k("MIN(b)"), r"column 2 of the SELECT list was SUM"),
    Change(
        "the second call without a name",
        by_k("SUM(a), COUNT(*)"),
        by_k("SUM(a), MIN(b)"),
        r"column 3 of the SELECT list was COUNT\(\*\), now it is MIN\(b\)",
    ),
    Change("a call in an expression", by_k("SUM(a) * 2 AS x"), by_k("MIN(b) * 2 AS x"), r"x was SUM\(a\)"),
    Change("a call into an expression", SUM, by_k("COALESCE(SUM(b), 0) AS s"), r"s was SUM\(a\)"),
    Change(
        "one of two calls in an expression",
        by_k("SUM(a) + COUNT(*) AS x"),
        by_k("COUNT(*) + MIN(b) AS x"),
        r"x was SUM\(a\), now it is MIN\(b\)",
    ),
    Change("DISTINCT added", by_k("COUNT(a) AS s"), by_k("COUNT(DISTINCT a) AS s"), r"is COUNT\(DISTINCT"),
    Change("DISTINCT removed", by_k("SUM(DISTINCT a) AS s"), SUM, r"s was SUM\(DISTINCT a\)"),
    Change("FILTER added", SUM, by_k("SUM(a) FILTER (WHERE f) AS s"), "now it is .* FILTER"),
    Change(
        "another FILTER",
        by_k("SUM(a) FILTER (WHERE b > 1) AS s"),
        by_k("SUM(a) FILTER (WHERE b > 2) AS s"),
        r"\(b, 1\).*, now it is .*\(b, 2\)",
    ),
    Change("COUNT(*) to COUNT(a)", by_k("COUNT(*) AS s"), by_k("COUNT(a) AS s"), r"s was COUNT\(\*\)"),
    Change("a computed argument", SUM, by_k("SUM(a + 1) AS s"), r"now it is SUM\(\+\(a, 1"),
    Change("a separator", by_k("LISTAGG(c) AS s"), by_k("LISTAGG(c, ';') AS s"), "s was LISTAGG"),
    Change("the last value", by_k("FIRST_VALUE(a) AS s"), by_k("LAST_VALUE(a) AS s"), "s was FIRST_VALUE"),
    Change("a percentage", by_k("PERCENTILE(a, 0.5) AS s"), by_k("PERCENTILE(a, 0.9) AS s"), "is PERCENTILE"),
    Change("a variance", by_k("STDDEV_POP(a) AS s"), by_k("STDDEV_SAMP(a) AS s"), "s was STDDEV_POP"),
    Change("a filter", SUM, by_k("SUM(a) AS s", "WHERE b > 1"), r"where this query has .*\(b, 1\)"),
    Change(
        "another filter",
        by_k("SUM(a) AS s", "WHERE b > 1"),
        by_k("SUM(a) AS s", "WHERE b >= 1"),
        r">\(b, 1\).* where this query has .*>=\(b, 1\)",
    ),
    Change("no filter", by_k("SUM(a) AS s", "WHERE b > 1"), SUM, r"it has .*>\(b, 1\)"),
    Change("one more key", SUM, TWO_KEYS.format("k, b"), r"groupBy=\[k\].*groupBy=\[k, b\]"),
    Change("another key", SUM, "SELECT b, SUM(a) AS s FROM t GROUP BY b", r"groupBy=\[k\].*groupBy=\[b\]"),
    Change("a computed key", SUM, "SELECT SUM(a) AS s FROM t GROUP BY k + 1", r"groupBy=\[k\]"),
    Change("no key", SUM, "SELECT SUM(a) AS s FROM t", r"groupBy=\[k\].* query has GroupAggregate\(select"),
    Change(
        "the order of keys", TWO_KEYS.format("k, b"), TWO_KEYS.format("b, k"), "rows lie by keys in their"
    ),
    Change(
        "grouping sets",
        TWO_KEYS.format("GROUPING SETS ((k), (b))"),
        TWO_KEYS.format("GROUPING SETS ((k), (k, b))"),
        "it has Expand.* where this query has Expand",
    ),
    Change("CUBE", TWO_KEYS.format("ROLLUP (k, b)"), TWO_KEYS.format("CUBE (k, b)"), "it has Expand"),
    Change(
        "a call over retracted rows",
        "SELECT k, SUM(a) AS s FROM cdc GROUP BY k",
        "SELECT k, SUM(a) AS s, MAX(b) AS m FROM cdc GROUP BY k",
        r"MAX\(b\) .* is new, and the input takes rows back",
    ),
    Change(
        "a call that is a key above",
        f"SELECT n, COUNT(*) AS m FROM {COUNTED.format('COUNT(*)')} GROUP BY n",
        f"SELECT n, COUNT(*) AS m FROM {COUNTED.format('COUNT(a)')} GROUP BY n",
        r"its GroupAggregate\(groupBy=\[n\]",
    ),
    Change(
        "HAVING below",
        f"SELECT SUM(n) AS m FROM {COUNTED.format('COUNT(*)')}",
        f"SELECT SUM(n) AS m FROM (SELECT * FROM {COUNTED.format('COUNT(*)')} WHERE n > 1)",
        r"where=\[>\(n, 1\)\]",
    ),
    Change("distinct rows", "SELECT DISTINCT k FROM t", "SELECT DISTINCT b FROM t", r"groupBy=\[b\]"),
    Change("more distinct rows", "SELECT DISTINCT k FROM t", "SELECT DISTINCT k, b FROM t", r"\[k, b\]"),
    Change("a time-to-live", *same(SUM), "time-to-live than this query's", options=EXPIRES),
    Change(
        "a hint's time-to-live",
        "SELECT /*+ STATE_TTL('t'='1h') */ k, SUM(a) AS s FROM t GROUP BY k",
        "SELECT /*+ STATE_TTL('t'='2h') */ k, SUM(a) AS s FROM t GROUP BY k",
        "time-to-live than this query's",
    ),
)
