"""Changes of meaning of sources, set operations, sinks and the time zone."""

from __future__ import annotations

from tests.runtime.evolution.changes.aggregations import SUM, by_k
from tests.runtime.evolution.changes.change import Change, altered, files, kafka, same, upserts
from tests.runtime.evolution.changes.windows import in_windows

FROM_CSV, FROM_CDC, FROM_KAFKA = (SUM.replace("FROM t", f"FROM {name}") for name in ("c", "cdc", "kf"))
SCAN = "its TableSourceScan.* has other options"
UNION, TWO = "(SELECT k FROM t UNION ALL SELECT j FROM r)", "SELECT k FROM t {} SELECT j FROM r"
KEPT, DIRECT = "INSERT INTO u SELECT k, a, b FROM cdc", "INSERT INTO s SELECT k, a, b FROM t"
BY_HOUR = "SELECT h, COUNT(*) AS n FROM (SELECT EXTRACT(HOUR FROM l) AS h FROM t) GROUP BY h"
COMPUTED, COMPUTED_KEY = SUM.replace("(a)", "(e)"), "SELECT e, SUM(a) AS s FROM t GROUP BY e"
WITH_ONE = "SELECT k, (SELECT {}(x) FROM r) AS m FROM t"
WITH_PATH = "k INT, n STRING METADATA FROM 'file.{}'"
SOURCES = (
    Change("a path", *same(SUM), SCAN, tables=altered("t", "'/t'", "'/other'")),
    Change("a format", *same(SUM), SCAN, tables=altered("t", "='json'", "='avro'")),
    Change("rows become changes", *same(SUM), SCAN, tables=altered("t", "='json'", "='debezium-json'")),
    Change("changes become rows", *same(FROM_CDC), SCAN, tables=altered("cdc", "debezium-json", "json")),
    Change(
        "which files",
        *same(SUM),
        SCAN,
        tables=altered("t", "='json'", "='json', 'source.path.regex-pattern'='.*x'"),
    ),
    Change(
        "the text of NULL",
        *same(FROM_CSV),
        SCAN,
        tables=altered("c", "='csv'", "='csv', 'csv.null-literal'='0'"),
    ),
    Change(
        "a delimiter",
        *same(FROM_CSV),
        SCAN,
        tables=altered("c", "='csv'", "='csv', 'csv.field-delimiter'=';'"),
    ),
    Change(
        "the text of times",
        *same(in_windows()),
        SCAN,
        tables=altered("t", "='json'", "='json', 'json.timestamp-format.standard'='ISO-8601'"),
    ),
    Change(
        "the order of columns in lines",
        *same(FROM_CSV),
        "the place of column a of table .*: 2 then, 3 now",
        tables=altered("c", "a BIGINT, b BIGINT", "b BIGINT, a BIGINT"),
    ),
    Change(
        "a column before others in lines",
        *same(FROM_CSV),
        "the place of column k of table .*: 1 then, 2 now",
        tables=altered("c", "k INT", "n INT, k INT"),
    ),
    Change(
        "a column of a folder's name",
        *same(SUM),
        "the place of column k of table .*: in the file then, in the name of a folder now",
        tables=altered("t", ") WITH", ") PARTITIONED BY (k) WITH"),
    ),
    Change(
        "a last column of lines, now of a folder's name",
        *same("SELECT b, COUNT(*) AS n FROM c GROUP BY b"),
        "the place of column b of table .*: 3 then, in the name of a folder now",
        tables=altered("c", ") WITH", ") PARTITIONED BY (b) WITH"),
    ),
    Change(
        "metadata",
        *same("SELECT n, COUNT(*) AS s FROM t GROUP BY n"),
        "other options, types",
        had={"t": files("t", WITH_PATH.format("name"))},
        tables={"t": files("t", WITH_PATH.format("path"))},
    ),
    Change(
        "a narrower type",
        *same(SUM),
        r"SUM\(a\) of BIGINT, now of INT",
        tables=altered("t", "a BIGINT", "a INT"),
    ),
    Change(
        "another type",
        *same(SUM),
        "s was .* of BIGINT, .* of DOUBLE",
        tables=altered("t", "a BIGINT", "a DOUBLE"),
    ),
    Change("another table", SUM, FROM_CDC, "default_database, t,.*default_database, cdc,"),
    Change(
        "a computed column",
        *same(COMPUTED),
        r"s was SUM\(\*\(a, 2.*, now it is SUM\(\*\(a, 3",
        had={"t": files("t", "k INT, a BIGINT, e AS a * 2")},
        tables={"t": files("t", "k INT, a BIGINT, e AS a * 3")},
    ),
    Change(
        "a computed column that is a key",
        *same(COMPUTED_KEY),
        "other options, types",
        had={"t": files("t", "k INT, a BIGINT, e AS k / 2")},
        tables={"t": files("t", "k INT, a BIGINT, e AS k / 3")},
    ),
    Change("a topic", *same(FROM_KAFKA), SCAN, tables={"kf": kafka("y")}),
    Change("brokers", *same(FROM_KAFKA), SCAN, tables=altered("kf", "h:1", "h:2")),
    Change("where a topic begins", *same(FROM_KAFKA), SCAN, tables={"kf": kafka(mode="latest-offset")}),
    Change(
        "a source's primary key",
        *same(FROM_KAFKA.replace("k", "n").replace("FROM nf", "FROM kf")),
        r"Normalize\(key=\[k\].*Normalize\(key=\[n\]",
        had={"kf": upserts("k")},
        tables={"kf": upserts("n")},
    ),
    Change(
        "duplicate changes",
        *same(FROM_CDC),
        "it lacks ChangelogNormalize",
        had=altered("cdc", "b BIGINT", "b BIGINT, PRIMARY KEY (k) NOT ENFORCED"),
        options={"table.exec.source.cdc-events-duplicate": "true"},
    ),
    Change(
        "one more branch",
        by_k("COUNT(*) AS n"),
        f"SELECT k, COUNT(*) AS n FROM {UNION} GROUP BY k",
        r"\bj, ts",
    ),
    Change(
        "a branch's column",
        "SELECT k, SUM(a) AS n FROM (SELECT k, a FROM t UNION ALL SELECT j, x FROM r) GROUP BY k",
        "SELECT k, SUM(a) AS n FROM (SELECT k, a FROM t UNION ALL SELECT j, y FROM r) GROUP BY k",
        r"n was SUM\(a\), now it is another SUM\(a\)",
    ),
    Change(
        "UNION",
        f"SELECT COUNT(*) AS n FROM {UNION}",
        f"SELECT COUNT(*) AS n FROM {UNION.replace('ALL ', '')}",
        "GroupAggregate",
    ),
    Change("INTERSECT", TWO.format("UNION"), TWO.format("INTERSECT"), "it has Union.*LeftSemiJoin"),
    Change("EXCEPT", TWO.format("INTERSECT"), TWO.format("EXCEPT"), "LeftSemiJoin.*LeftAntiJoin"),
    Change(
        "EXCEPT turned", TWO.format("EXCEPT"), "SELECT j FROM r EXCEPT SELECT k FROM t", r"\(k, k\).*\(j, j\)"
    ),
    Change("INTERSECT ALL", TWO.format("INTERSECT"), TWO.format("INTERSECT ALL"), "LeftSemiJoin.*vcol_left"),
    Change("a scalar subquery", WITH_ONE.format("MAX"), WITH_ONE.format("MIN"), r"was MAX\(x\), now it is"),
    Change("a filter before a sink", DIRECT, DIRECT + " WHERE b > 1", r"where=\[>\(b, 1\)\]"),
    Change(
        "the primary key of a sink that keeps rows",
        *same(KEPT),
        r"its Sink\(.*has other options",
        tables=altered("u", "KEY (k)", "KEY (q)"),
    ),
    Change("a filter before a sink that keeps rows", KEPT, KEPT + " WHERE b > 1", r"where=\[>\(b, 1\)\]"),
    Change(
        "a call that a sink shows",
        "INSERT INTO s SELECT k, SUM(a), MIN(b) FROM t GROUP BY k",
        "INSERT INTO s SELECT k, SUM(a), MAX(b) FROM t GROUP BY k",
        r"column 3 of the SELECT list was MIN\(b\)",
    ),
    Change("the time zone", *same(BY_HOUR), "the time zone: UTC then, Asia/Tokyo now", zone="Asia/Tokyo"),
)
