"""Changes of meaning of windows."""

from __future__ import annotations

from tests.runtime.evolution.changes.change import Change, files, same


def minutes(*sizes: int) -> str:
    return ", ".join(f"INTERVAL '{size}' MINUTE" for size in sizes)


def in_windows(
    kind: str = "TUMBLE",
    sizes: str = minutes(1),
    *,
    calls: str = "COUNT(*) AS n",
    key: str = "",
    time: str = "ts",
) -> str:
    by = f"window_start, window_end{key}"
    return (
        f"SELECT window_end, {calls} FROM TABLE({kind}(TABLE t, DESCRIPTOR({time}), {sizes})) GROUP BY {by}"
    )


def session_windows(gap: int, key: str = "k") -> str:
    return in_windows().replace(
        f"TUMBLE(TABLE t, DESCRIPTOR(ts), {minutes(1)}",
        f"SESSION(TABLE t PARTITION BY {key}, DESCRIPTOR(ts), {minutes(gap)}",
    )


def group_windows(kind: str = "TUMBLE", size: int = 1) -> str:
    return f"SELECT k, COUNT(*) AS n FROM t GROUP BY k, {kind}(ts, {minutes(size)})"


def window_top(order: str = "a DESC", n: int = 3, size: int = 1, key: str = "k") -> str:
    return (
        f"SELECT k, a FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, {key} "
        f"ORDER BY {order}) AS rn FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), {minutes(size)}))) "
        f"WHERE rn <= {n}"
    )


def window_join(kind: str = "", size: int = 1, on: str = "o.k = q.j") -> str:
    left, right = (f"(SELECT * FROM TABLE(TUMBLE(TABLE {n}, DESCRIPTOR(ts), {minutes(size)})))" for n in "tr")
    return (
        f"SELECT o.k, o.a, q.x FROM {left} o {kind} JOIN {right} q ON {on} "
        "AND o.window_start = q.window_start AND o.window_end = q.window_end"
    )


EARLY = {"table.exec.emit.early-fire.enabled": "true", "table.exec.emit.early-fire.delay": "5 s"}
LATE = {"table.exec.emit.allow-lateness": "1 h"}
FIRED_LATE = {"table.exec.emit.late-fire.enabled": "true", "table.exec.emit.late-fire.delay": "1 s"}
TIMES = "k INT, a BIGINT, e BIGINT, tt TIMESTAMP(3), uu TIMESTAMP(3), "
WINDOWS = (
    Change("a window's size", in_windows(), in_windows(sizes=minutes(2)), r"\[1 min\].*\[2 min\]"),
    Change("an offset", in_windows(sizes=minutes(3)), in_windows(sizes=minutes(3, 1)), r"offset=\[1 min"),
    Change("HOP", in_windows(sizes=minutes(2)), in_windows("HOP", minutes(1, 2)), r"\[TUMBLE.*\[HOP"),
    Change("a slide", in_windows("HOP", minutes(1, 10)), in_windows("HOP", minutes(2, 10)), r"slide=\[2 min"),
    Change(
        "HOP's size", in_windows("HOP", minutes(1, 10)), in_windows("HOP", minutes(1, 5)), r"size=\[5 min"
    ),
    Change(
        "a step", in_windows("CUMULATE", minutes(1, 9)), in_windows("CUMULATE", minutes(3, 9)), r"step=\[3"
    ),
    Change(
        "CUMULATE's size",
        in_windows("CUMULATE", minutes(1, 9)),
        in_windows("CUMULATE", minutes(1, 8)),
        r"size=\[8",
    ),
    Change("CUMULATE to HOP", in_windows("CUMULATE", minutes(1, 9)), in_windows("HOP", minutes(1, 9)), "HOP"),
    Change("a gap", session_windows(1), session_windows(2), r"gap=\[1 min\].*gap=\[2 min\]"),
    Change("the key of sessions", session_windows(1), session_windows(1, "b"), r"partition keys=\[b\]"),
    Change("processing time", in_windows(), in_windows(time="p"), r"time_col=\[ts\].*time_col=\[p\]"),
    Change("its size", in_windows(time="p"), in_windows(time="p", sizes=minutes(2)), r"\[1 min\].*\[2 min\]"),
    Change(
        "a call of windows", in_windows(calls="SUM(a) AS s"), in_windows(calls="SUM(b) AS s"), "s was SUM"
    ),
    Change("a key of windows", in_windows(key=", k"), in_windows(key=", b"), r"groupBy=\[k\].*groupBy=\[b\]"),
    Change("a group window's size", group_windows(), group_windows(size=3), r"\[1 min\].*\[3 min\]"),
    Change("a group window's kind", group_windows(), group_windows("SESSION"), r"\[TUMBLE.*\[SESSION"),
    Change("early results", *same(group_windows()), r"query has .*emit=\[early", options=EARLY),
    Change("no early results", *same(group_windows()), r"it has .*emit=\[early", options_before=EARLY),
    Change(
        "late results",
        *same(group_windows()),
        r"query has .*emit=\[late",
        options={**LATE, **FIRED_LATE},
        options_before=LATE,
    ),
    Change(
        "a filter below windows",
        in_windows(),
        in_windows().replace(" GROUP BY", " WHERE b > 1 GROUP BY"),
        "where this query has WindowTableFunction",
    ),
    Change(
        "another time attribute",
        in_windows(time="tt"),
        in_windows(time="uu"),
        r"rowtime=\[tt\].*rowtime=\[uu\]",
        had={"t": files("t", TIMES + "WATERMARK FOR tt AS tt")},
        tables={"t": files("t", TIMES + "WATERMARK FOR uu AS uu")},
    ),
    Change(
        "a time attribute's expression",
        *same(in_windows()),
        r"its WatermarkAssigner\(rowtime=\[ts\]",
        had={"t": files("t", TIMES + "ts AS TO_TIMESTAMP_LTZ(e, 3), WATERMARK FOR ts AS ts")},
        tables={"t": files("t", TIMES + "ts AS TO_TIMESTAMP_LTZ(e * 10, 3), WATERMARK FOR ts AS ts")},
    ),
    Change("the order of a window's Top-N", window_top(), window_top("b DESC"), r"\[a DESC\].*\[b DESC\]"),
    Change("its direction", window_top(), window_top("a ASC"), r"\[a DESC\].*\[a ASC\]"),
    Change("its N", window_top(), window_top(n=5), "has the first 3 rows of a key, the query shows 5"),
    Change("its window", window_top(), window_top(size=2), r"\[1 min\].*\[2 min\]"),
    Change("its key", window_top(), window_top(key="b"), r"partitionBy=\[k\].*partitionBy=\[b\]"),
    Change("a window join's window", window_join(), window_join(size=2), r"\[1 min\].*\[2 min\]"),
    Change(
        "its keys", window_join(), window_join(on="o.k = q.j AND o.a = q.x"), "where this query has Window"
    ),
    Change("its kind", window_join(), window_join("LEFT"), "InnerJoin.*LeftOuterJoin"),
)
