"""The benchmark queries by event time."""

from __future__ import annotations

from bench.case import Table, TableCase
from bench.data import TimedRows

_COLUMNS = "ts TIMESTAMP(3), k BIGINT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND"
_DAY = 86_400


def window_cases(rows: int) -> tuple[TableCase, ...]:
    """``rows`` are the input of each."""
    keys = max(1, rows // 10)
    hour, day = (_timed(name, rows, keys, seconds) for name, seconds in (("hour", 3_600), ("day", _DAY)))
    return (*_aggregations(rows, keys, hour, day), *_others(rows, hour))


def _timed(name: str, rows: int, keys: int, seconds: int) -> Table:
    return Table(
        name="src",
        columns=_COLUMNS,
        data=TimedRows(name=name, rows=rows, keys=keys, seconds=seconds),
        small=TimedRows(name=f"warm-{name}", rows=1_000, keys=100, seconds=seconds),
    )


def _aggregations(rows: int, keys: int, hour: Table, day: Table) -> tuple[TableCase, ...]:
    sink = "k BIGINT, e TIMESTAMP(3), c BIGINT, s BIGINT"
    by_key = (
        "SELECT k, window_end, COUNT(*), SUM(v) FROM TABLE({call}(TABLE {{src}}, DESCRIPTOR(ts), {sizes}))"
        " GROUP BY k, window_start, window_end"
    )
    return (
        TableCase(
            name="tumble",
            title=f"TUMBLE of a minute, {keys:,} keys",
            rows=rows,
            tables=(hour,),
            sink=sink,
            query=by_key.format(call="TUMBLE", sizes="INTERVAL '1' MINUTE"),
            floor=2.0,
        ),
        TableCase(
            name="hop",
            title=f"HOP of 10 by 1 minutes, {max(1, rows // 1_000):,} keys",
            rows=rows,
            tables=(_timed("hop", rows, max(1, rows // 1_000), 3_600),),
            sink=sink,
            query=by_key.format(call="HOP", sizes="INTERVAL '1' MINUTE, INTERVAL '10' MINUTE"),
            floor=2.0,
        ),
        TableCase(
            name="cumulate-distinct",
            title=f"CUMULATE of a day by minutes, COUNT DISTINCT of {keys:,} users",
            rows=rows,
            tables=(day,),
            sink="e TIMESTAMP(3), u BIGINT, c BIGINT",
            query=(
                "SELECT window_end, COUNT(DISTINCT k), COUNT(*) FROM TABLE(CUMULATE(TABLE {src},"
                " DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' DAY)) GROUP BY window_start, window_end"
            ),
            floor=2.0,
        ),
        TableCase(
            name="session",
            title=f"SESSION of ten seconds, {max(1, rows // 100):,} keys",
            rows=rows,
            tables=(_timed("session", rows, max(1, rows // 100), 3_600),),
            sink=sink,
            query=(
                "SELECT k, window_end, COUNT(*), SUM(v) FROM TABLE(SESSION(TABLE {src} PARTITION BY k,"
                " DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end"
            ),
            floor=2.0,
        ),
    )


def _others(rows: int, hour: Table) -> tuple[TableCase, ...]:
    keys = max(1, rows // 20)
    left, right = (_timed(name, rows // 2, keys, 3_600) for name in ("clicks", "buys"))
    return (
        TableCase(
            name="window-top-n",
            title="the best 100 of every minute",
            rows=rows,
            tables=(hour,),
            sink="e TIMESTAMP(3), k BIGINT, v BIGINT, p BIGINT",
            query=(
                "SELECT window_end, k, v, place FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start,"
                " window_end ORDER BY v DESC) AS place FROM TABLE(TUMBLE(TABLE {src}, DESCRIPTOR(ts),"
                " INTERVAL '1' MINUTE))) WHERE place <= 100"
            ),
            floor=2.0,
        ),
        TableCase(
            name="interval-join",
            title=f"interval join within a minute, {keys:,} keys",
            rows=2 * (rows // 2),
            tables=(_named("clicks", left), _named("buys", right)),
            sink="k BIGINT, a BIGINT, b BIGINT",
            query=(
                "SELECT l.k, l.v, r.v FROM {clicks} l JOIN {buys} r ON l.k = r.k"
                " AND r.ts BETWEEN l.ts AND l.ts + INTERVAL '1' MINUTE"
            ),
            floor=2.0,
        ),
        _pattern(rows),
    )


def _pattern(rows: int) -> TableCase:
    keys = max(1, rows // 100)
    return TableCase(
        name="match",
        title=f"MATCH_RECOGNIZE, falls that end in a rise within a minute, {keys:,} keys",
        rows=rows,
        tables=(_timed("match", rows, keys, 3_600),),
        sink="k BIGINT, a BIGINT, low BIGINT, c BIGINT, up BIGINT",
        query=(
            "SELECT k, a, low, c, up FROM {src} MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts"
            " MEASURES A.v AS a, LAST(B.v) AS low, COUNT(B.v) AS c, C.v AS up"
            " ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW"
            " PATTERN (A B+ C) WITHIN INTERVAL '1' MINUTE"
            " DEFINE B AS B.v < LAST(B.v, 1) OR (LAST(B.v, 1) IS NULL AND B.v < A.v),"
            " C AS C.v > LAST(B.v))"
        ),
        floor=1.0,
    )


def _named(name: str, table: Table) -> Table:
    return Table(name=name, columns=table.columns, data=table.data, small=table.small)
