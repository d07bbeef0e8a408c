"""Random windows by event time: aggregation, grouping sets, Top-N and joins by window, OVER by time.

Only over rows that no watermark has passed, those that are taken back among them: a batch knows of no late
rows. Gaps end between the whole seconds of rows: sessions that only touch are one or two, by when the
watermark passes. But over rows that come when their time has come they are one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.random_queries import aggregates, temporal
from tests.random_queries.expressions import condition
from tests.random_queries.pools import Theme, Type
from tests.random_queries.relation import NUMBERS, Column, Maker, Relation, items, same_type
from tests.random_queries.tables import ROWTIME

STAMP = Column(name="", type=Type.TIMESTAMP)
BOUNDS = (("window_start", STAMP), ("window_end", STAMP))
KINDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "TUMBLE": (("5",), ("7", "2")),
    "HOP": (("2", "6"), ("3", "7"), ("7", "3")),
    "CUMULATE": (("2", "8"), ("3", "10"), ("2", "6", "1")),
    "SESSION": (("1.5",), ("6.5",)),
    "DYNAMIC_CUMULATE": (("2", "3.5"), ("10", "6.5"), ("5", "25.5")),
}
"""Their sizes in seconds; of large tables, whose times are minutes apart, forty times as long."""
TOUCHING = {"SESSION": (("1",), ("3",)), "DYNAMIC_CUMULATE": (("2", "3"), ("5", "4"))}
"""Sizes whose windows may only touch."""
MONTHS = {"TUMBLE": ("1",), "HOP": ("1", "3"), "CUMULATE": ("1", "12")}
BY_ROWS = ("SESSION", "DYNAMIC_CUMULATE")


@dataclass(frozen=True, slots=True)
class Window:
    kind: str
    sizes: str

    def of(self, time: str, role: str = "") -> str:
        """The group window, or what SELECT says of it."""
        return f"{self.kind}{role}({time}, {self.sizes})"

    def table(self, inner: Relation, partition: list[str]) -> str:
        by = f" PARTITION BY ({', '.join(partition)})" if partition else ""
        rows = inner.source if inner.source.startswith("(") else f"TABLE {inner.source}"
        call = f"{rows}{by}, DESCRIPTOR({ROWTIME}), {self.sizes}"
        return f"TABLE({self.kind}({call}))"


def _window_over(maker: Maker, inner: Relation) -> Window:
    kind = maker.chance.choice(BY_ROWS if inner.at_its_time and maker.flip() else tuple(KINDS))
    if kind in TOUCHING and inner.at_its_time and maker.flip(0.8):
        return Window(kind, ", ".join(_seconds(float(n)) for n in maker.chance.choice(TOUCHING[kind])))
    return _window(maker, (kind,))


def _window(maker: Maker, kinds: tuple[str, ...] = tuple(KINDS)) -> Window:
    kind = maker.chance.choice(kinds)
    if kind in MONTHS and maker.flip(0.1):
        return Window(kind, ", ".join(f"INTERVAL '{n}' MONTH" for n in MONTHS[kind]))
    scale = 40 if maker.theme is Theme.LARGE else 1
    sizes = [float(n) * scale for n in maker.chance.choice(KINDS[kind])]
    if kind in BY_ROWS and scale > 1:
        sizes[-1] += 0.5
    return Window(kind, ", ".join(map(_seconds, sizes)))


def _seconds(number: float) -> str:
    return f"INTERVAL '{number:g}' {'SECOND' if number < 100 else 'SECOND(4, 3)'}"


def _timed(maker: Maker) -> Relation | None:
    """Rows with an event time, which is their last column: those of a table as they come or of one that
    changes, perhaps with what held at their times; or a view of them that keeps the time or gives another."""
    found = [t for t in maker.tables if t.rowtime]
    if not found:
        return None
    rows = maker.of(maker.chance.choice(found))
    while maker.flip(0.2 if rows.arrival is not None else 0.35):
        rows = temporal.timed(maker, rows)
    if rows.arrival is not None and maker.flip(0.25):
        return maker.chance.choice((_first, _matched, _fired))(maker, rows)
    if maker.flip(0.15):
        return _filtered(maker, rows)
    unsorted = rows.arrival is not None and not rows.arrival.sorted and not rows.at_its_time
    return _latest(maker, rows) if unsorted and maker.flip(0.15) else rows


def _filtered(maker: Maker, rows: Relation) -> Relation:
    a = maker.name("t")
    columns = (*maker.some(rows.columns[:-1], 1), rows.columns[-1])
    listed = ", ".join(f"{a}.{c.name}" for c in columns)
    where = condition(maker, items(a, rows.columns))
    source = f"(SELECT {listed} FROM {rows.source} AS {a} WHERE {where})"
    return replace(rows, source=source, columns=columns, inputs=(rows,), key=())


def _fired(maker: Maker, rows: Relation) -> Relation:
    """What windows give: their time is that of the window."""
    a, window = maker.name("t"), _window(maker, ("TUMBLE", "HOP"))
    keys = items(a, maker.some(rows.ordered[:-1], 0, 1))
    count = ("COUNT(*)", Column(name="", type=Type.BIGINT))
    by = ", ".join((f"{a}.window_start, {a}.window_end, {a}.window_time", *(text for text, _ in keys)))
    rest = f"FROM {window.table(rows, [])} AS {a} GROUP BY {by}"
    return _given(maker, rows, [*keys, count], f"{a}.window_time", rest)


def _matched(maker: Maker, rows: Relation) -> Relation:
    """Each row as a match of its own."""
    kept = maker.some(rows.ordered[:-1], 1, 2)
    m = maker.name("m")
    measures = ", ".join(f"{m}.{c.name} AS {c.name}" for c in kept)
    rest = f"FROM {rows.source} MATCH_RECOGNIZE (ORDER BY {ROWTIME} MEASURES {measures}, "
    rest += f"MATCH_ROWTIME() AS {ROWTIME} ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW "
    rest += f"PATTERN ({m}) DEFINE {m} AS TRUE)"
    return _given(maker, rows, [(c.name, c) for c in kept], ROWTIME, rest)


def _first(maker: Maker, rows: Relation) -> Relation:
    """The first time of each key. Rows that tie are equal."""
    a, b = maker.name("t"), maker.name("t")
    kept = maker.some(rows.ordered[:-1], 1, 2)
    by = ", ".join(f"{a}.{c.name}" for c in kept)
    call = f"ROW_NUMBER() OVER (PARTITION BY {by} ORDER BY {a}.{ROWTIME}) AS place"
    rest = f"FROM (SELECT {a}.*, {call} FROM {rows.source} AS {a}) AS {b} WHERE {b}.place = 1"
    return _given(maker, rows, items(b, kept), f"{b}.{ROWTIME}", rest)


def _given(maker: Maker, rows: Relation, shown: list[tuple[str, Column]], time: str, rest: str) -> Relation:
    """Rows that an operator gives when ``time`` has come."""
    named = [(text, replace(c, name=maker.name("c"))) for text, c in shown]
    listed = ", ".join([*(f"{text} AS {c.name}" for text, c in named), f"{time} AS {ROWTIME}"])
    columns = (*(c for _, c in named), rows.columns[-1])
    source = f"(SELECT {listed} {rest})"
    return Relation(source=source, columns=columns, inputs=(rows,), arrival=rows.arrival, at_its_time=True)


def _latest(maker: Maker, rows: Relation) -> Relation:
    """The last time of each key: later rows take earlier ones back, as long as no window has ended. Rows that
    tie are equal."""
    a, b = maker.name("t"), maker.name("t")
    columns = (*maker.some(rows.ordered[:-1], 1, 2), rows.columns[-1])
    by = ", ".join(f"{a}.{c.name}" for c in columns[:-1])
    call = f"ROW_NUMBER() OVER (PARTITION BY {by} ORDER BY {a}.{ROWTIME} DESC) AS place"
    ranked = f"(SELECT {a}.*, {call} FROM {rows.source} AS {a})"
    listed = ", ".join(f"{b}.{c.name}" for c in columns)
    source = f"(SELECT {listed} FROM {ranked} AS {b} WHERE {b}.place = 1)"
    return Relation(source=source, columns=columns, inputs=(rows,))


def windowed(maker: Maker, depth: int) -> Relation:
    """Aggregation by window and some columns, perhaps in several sets of them."""
    inner = _timed(maker)
    if inner is None:
        return aggregates.grouped(maker, depth)
    a, window = maker.name("t"), _window_over(maker, inner)
    keys = items(a, maker.some(inner.ordered[:-1], 0, 2))
    calls = [aggregates.aggregate(maker, items(a, inner.columns)) for _ in range(maker.chance.randint(1, 3))]
    names = [text for text, _ in keys]
    if maker.flip(0.4):
        time = f"{a}.{ROWTIME}"
        shown = [(window.of(time, role), STAMP) for role in ("_START", "_END")]
        rest = f"FROM {inner.source} AS {a} GROUP BY {_sets(maker, window.of(time), names)}"
        return maker.select([*shown, *keys, *calls], rest, (inner,))
    by_rows = window.kind in BY_ROWS
    partition = [c.name for c in maker.some(inner.ordered[:-1], 0, 1)] if maker.flip(0.3) else []
    partition = partition or [text.split(".")[1] for text in names]
    bounds = f"{a}.window_start, {a}.window_end"
    rest = f"FROM {window.table(inner, partition if by_rows else [])} AS {a} GROUP BY "
    rest += _sets(maker, bounds, names)
    return maker.select([*((f"{a}.{n}", c) for n, c in BOUNDS), *keys, *calls], rest, (inner,))


def _sets(maker: Maker, window: str, keys: list[str]) -> str:
    listed = ", ".join((window, *keys))
    if not keys or maker.flip(0.7):
        return listed
    if maker.flip():
        return f"{window}, {maker.chance.choice(('ROLLUP', 'CUBE'))} ({', '.join(keys)})"
    return f"GROUPING SETS (({listed}), ({window}, {keys[0]}), ({window}))"


def window_top_n(maker: Maker, depth: int) -> Relation:
    """The first rows of each window."""
    inner = _timed(maker)
    if inner is None:
        return aggregates.grouped(maker, depth)
    a, b, rank, window = maker.name("t"), maker.name("t"), maker.name("r"), _window_over(maker, inner)
    columns = inner.ordered
    partition = [c.name for c in maker.some(columns[:-1], 0, 1)]
    keys = ", ".join(f"{a}.{name}" for name in ("window_start", "window_end", *partition))
    order = ", ".join(f"{a}.{c.name}{maker.chance.choice(('', ' DESC'))}" for c in maker.some(columns, 99))
    shown = [*BOUNDS, *((c.name, c) for c in columns)]
    call = f"ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {order}) AS {rank}"
    source = window.table(inner, partition if window.kind in BY_ROWS else [])
    ranked = f"(SELECT {', '.join(f'{a}.{n}' for n, _ in shown)}, {call} FROM {source} AS {a})"
    rest = f"FROM {ranked} AS {b} WHERE {b}.{rank} {maker.chance.choice(('= 1', '<= 2', '<= 4'))}"
    return maker.select(_untimed([(f"{b}.{n}", c) for n, c in shown]), rest, (inner,))


def window_join(maker: Maker, depth: int) -> Relation:
    """Rows of one window side by side, or those that have none there."""
    left, right = _timed(maker), _timed(maker)
    if left is None or right is None:
        return aggregates.grouped(maker, depth)
    a, b, window = maker.name("t"), maker.name("t"), _window(maker, tuple(MONTHS))
    on = [f"{a}.{n} = {b}.{n}" for n, _ in BOUNDS]
    pairs = same_type(left.ordered, right.ordered)
    if pairs and maker.flip():
        x, y = maker.chance.choice(pairs)
        on.append(f"{a}.{x.name} = {b}.{y.name}")
    shown = [*((f"{a}.{n}", c) for n, c in BOUNDS), *items(a, maker.some(left.columns, 1, 2))]
    first, second = f"{window.table(left, [])} AS {a}", f"{window.table(right, [])} AS {b}"
    if maker.flip(0.3):
        asked = f"{maker.chance.choice(('', 'NOT '))}EXISTS (SELECT * FROM {second} WHERE {' AND '.join(on)})"
        return maker.select(_untimed(shown), f"FROM {first} WHERE {asked}", (left, right))
    kind = maker.chance.choice(("INNER", "LEFT", "RIGHT", "FULL"))
    shown += items(b, maker.some(right.columns, 1, 2))
    rest = f"FROM {first} {kind} JOIN {second} ON {' AND '.join(on)}"
    return maker.select(_untimed(shown), rest, (left, right))


def _untimed(shown: list[tuple[str, Column]]) -> list[tuple[str, Column]]:
    """Without time attributes: a row comes out of its window when its own time is long over, and is late for
    whatever works by that."""
    return [(f"CAST({text} AS TIMESTAMP(3))" if text.endswith(".rt") else text, c) for text, c in shown]


def over_time(maker: Maker, depth: int) -> Relation:
    """Running aggregates in the order of time, equal times together."""
    inner = _timed(maker)
    if inner is None:
        return aggregates.grouped(maker, depth)
    a = maker.name("t")
    keys = [f"{a}.{c.name}" for c in maker.some(inner.ordered[:-1], 0, 1)]
    by = f"PARTITION BY {', '.join(keys)} " if keys else ""
    frame = maker.chance.choice(("", " RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW"))
    window = f"({by}ORDER BY {a}.{ROWTIME}{frame})"
    column = maker.chance.choice(list(inner.ordered))
    calls = [("COUNT(*)", Column(name="", type=Type.BIGINT))]
    if column.type in aggregates.MINIMA:
        calls += [(f"{f}({a}.{column.name})", column) for f in ("MIN", "MAX")]
    if column.type in NUMBERS and column.exact:
        calls.append((f"SUM({a}.{column.name})", column))
    call, result = maker.chance.choice(calls)
    shown = [*items(a, maker.some(inner.columns, 1, 4)), (f"{call} OVER {window}", result)]
    return maker.select(shown, f"FROM {inner.source} AS {a}", (inner,))
