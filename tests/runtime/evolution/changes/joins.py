"""Changes of meaning of joins and lookups."""

from __future__ import annotations

from tests.runtime.evolution.changes.aggregations import COUNTED
from tests.runtime.evolution.changes.change import Change, altered, files, same


def joined(kind: str = "", on: str = "k = j") -> str:
    return f"SELECT k, a, x FROM t {kind} JOIN r ON {on}"


def near(kind: str = "", low: int = 5, high: int = 0, on: str = "k = j", time: str = "ts") -> str:
    bounds = f"r.{time} - INTERVAL '{low}' SECOND AND r.{time} + INTERVAL '{high}' SECOND"
    return f"SELECT k, a, x FROM t {kind} JOIN r ON {on} AND t.{time} BETWEEN {bounds}"


def versioned(kind: str = "", on: str = "t.k = v.id") -> str:
    return f"SELECT k, a, rate FROM t {kind} JOIN v FOR SYSTEM_TIME AS OF t.ts ON {on}"


def looked_up(kind: str = "", on: str = "t.k = d.id", calls: str = "COUNT(*) AS n") -> str:
    return f"SELECT t.k, {calls} FROM t {kind} JOIN d FOR SYSTEM_TIME AS OF t.p ON {on} GROUP BY t.k"


def existing(test: str) -> str:
    return f"SELECT k, a FROM t WHERE {test}"


IN, EXISTS = existing("k IN (SELECT j FROM r)"), existing("EXISTS (SELECT 1 FROM r WHERE j = k)")
MADE_BEFORE = files("t", "k INT, a BIGINT, made TIMESTAMP(3), ts AS made{}, WATERMARK FOR ts AS ts")
LATER = MADE_BEFORE.format(" + INTERVAL '1' SECOND")
JOINS = (
    Change("another join key", joined(), joined(on="a = x"), r"\[=\(k, j\)\].*\[=\(a, x\)\]"),
    Change("one more join key", joined(), joined(on="k = j AND a = x"), r"query has Join.*\[AND\("),
    Change("one more condition", joined(), joined(on="k = j AND a > x"), r"query has Join.*>\(a, x\)"),
    Change("another condition", joined(on="k = j AND a > x"), joined(on="k = j AND a >= x"), r">=\(a, x\)"),
    Change("LEFT JOIN", joined(), joined("LEFT"), "InnerJoin.*LeftOuterJoin"),
    Change("FULL JOIN", joined("LEFT"), joined("FULL"), "LeftOuterJoin.*FullOuterJoin"),
    Change("RIGHT JOIN", joined("LEFT"), joined("RIGHT"), "LeftOuterJoin.*RightOuterJoin"),
    Change("NOT IN", IN, existing("k NOT IN (SELECT j FROM r)"), "LeftSemiJoin.*LeftAntiJoin"),
    Change("NOT EXISTS", EXISTS, EXISTS.replace("EXISTS", "NOT EXISTS"), "LeftSemiJoin.*LeftAntiJoin"),
    Change("IN to JOIN", IN, "SELECT k, a FROM t JOIN r ON k = j", "LeftSemiJoin.*InnerJoin"),
    Change("IN of another column", IN, existing("a IN (SELECT x FROM r)"), r"=\(k, j\).*=\(a, x\)"),
    Change("a filter below a join", joined(), joined() + " WHERE x > 1", r"where=\[>\(x, 1\)\]"),
    Change(
        "the sides of a self join",
        "SELECT o.k, q.a FROM t o JOIN t q ON o.k = q.b",
        "SELECT o.k, q.a FROM t o JOIN t q ON o.b = q.k",
        r"=\(k, b0\).*=\(b, k0\)",
    ),
    Change(
        "the side of a self join's column",
        "SELECT o.k, SUM(o.a) AS s FROM t o JOIN t q ON o.k = q.k GROUP BY o.k",
        "SELECT o.k, SUM(q.a) AS s FROM t o JOIN t q ON o.k = q.k GROUP BY o.k",
        "s was SUM",
    ),
    Change(
        "a joined column of one name",
        "SELECT k, SUM(e) AS s FROM (SELECT k, x AS e FROM t JOIN r ON k = j) GROUP BY k",
        "SELECT k, SUM(e) AS s FROM (SELECT k, y AS e FROM t JOIN r ON k = j) GROUP BY k",
        r"s was SUM\(x\), now it is SUM\(y\)",
    ),
    Change(
        "a joined call",
        f"SELECT j, n, x FROM {COUNTED.format('SUM(a)')} JOIN r ON n = x",
        f"SELECT j, n, x FROM {COUNTED.format('MAX(a)')} JOIN r ON n = x",
        "its Join",
    ),
    Change("an interval's lower bound", near(), near(low=9), "LowerBound=-5000.*LowerBound=-9000"),
    Change("its upper bound", near(), near(high=1), "leftUpperBound=0.*leftUpperBound=1000"),
    Change("its kind", near(), near("LEFT"), "InnerJoin.*LeftOuterJoin"),
    Change("its key", near(), near(on="a = x"), r"=\(k, j\).*=\(a, x\)"),
    Change("its time", near(), near(time="p"), "isRowTime=true"),
    Change("no interval", near(), joined(), "it has IntervalJoin.* where this query has Join"),
    Change("a temporal join's key", versioned(), versioned(on="t.k = v.id AND t.a = v.rate"), r"\(a, rate\)"),
    Change("its kind", versioned(), versioned("LEFT"), "InnerJoin.*LeftOuterJoin"),
    Change(
        "the time of versions",
        *same(versioned()),
        r"rowtime=\[vt\].*rowtime=\[wt\]",
        tables=altered("v", "FOR vt AS vt", "FOR wt AS wt"),
    ),
    Change(
        "the time of rows that look for versions",
        *same(versioned()),
        "other options, types",
        had={"t": MADE_BEFORE.format("")},
        tables={"t": LATER},
    ),
    Change("a lookup's key", looked_up(), looked_up(on="t.k = d.other"), r"\[id=k\].*\[other=k\]"),
    Change("its kind", looked_up(), looked_up("LEFT"), "InnerJoin.*LeftOuterJoin"),
    Change("its condition", looked_up(), looked_up(on="t.k = d.id AND d.other > 1"), r">\(other, 1\)"),
    Change("its table", *same(looked_up()), "its Lookup", tables=altered("d", "name'='d'", "name'='e'")),
    Change("its database", *same(looked_up()), "its Lookup", tables=altered("d", "/db", "/other")),
    Change(
        "a looked-up column",
        looked_up(calls="SUM(d.other) AS n"),
        looked_up(calls="SUM(d.id) AS n"),
        r"n was SUM\(other\), now it is SUM\(id\)",
    ),
)
