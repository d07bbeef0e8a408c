"""Random Top-N, deduplication, OVER aggregates and LIMIT.

ROW_NUMBER and ROWS frames sort by all columns, so that rows that tie are equal.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.random_queries.aggregates import MINIMA, distinct
from tests.random_queries.pools import Type
from tests.random_queries.relation import NUMBERS, Column, Maker, Relation, items

RANKS = ("ROW_NUMBER", "RANK", "DENSE_RANK")
NUMBER = Column(name="", type=Type.BIGINT)


def _sortable(relation: Relation) -> tuple[Column, ...]:
    """What can be shown next to a rank: arrays cannot be sorted, so they would leave ties open."""
    return relation.ordered


def _direction(maker: Maker) -> str:
    return maker.chance.choice(("", "", " DESC", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST"))


def _order(maker: Maker, alias: str, columns: Sequence[Column], *, total: bool) -> str:
    chosen = maker.some(columns, 1, 2)
    if total:
        chosen += [c for c in columns if c not in chosen]
    return ", ".join(f"{alias}.{c.name}{_direction(maker)}" for c in chosen)


def _partition(maker: Maker, alias: str, columns: Sequence[Column]) -> str:
    chosen = maker.some(columns, 0 if maker.flip(0.2) else 1, 2)
    return f"PARTITION BY {', '.join(f'{alias}.{c.name}' for c in chosen)} " if chosen else ""


def top_n(maker: Maker, depth: int) -> Relation:
    """The first rows, or a range of them, per partition; with or without the rank."""
    inner = maker.relation(depth)
    columns = _sortable(inner)
    if not columns:
        return distinct(maker, depth)
    a, b, rank = maker.name("t"), maker.name("t"), maker.name("r")
    function = maker.chance.choice(RANKS)
    order = _order(maker, a, columns, total=function == "ROW_NUMBER")
    call = f"{function}() OVER ({_partition(maker, a, columns)}ORDER BY {order})"
    bound = maker.chance.choice(("= 1", "<= 1", "<= 2", "< 3", "<= 5", "BETWEEN 2 AND 3", "= 2"))
    shown = items(a, columns)
    if maker.flip(0.3):
        return maker.select(shown, f"FROM {inner.source} AS {a} QUALIFY {call} {bound}", (inner,))
    ranked = f"(SELECT {', '.join(text for text, _ in shown)}, {call} AS {rank} FROM {inner.source} AS {a})"
    outer = items(b, maker.some(columns, 1))
    if maker.flip():
        outer.append((f"{b}.{rank}", NUMBER))
    return maker.select(outer, f"FROM {ranked} AS {b} WHERE {b}.{rank} {bound}", (inner,))


def deduplicated(maker: Maker, depth: int) -> Relation:
    """Keep-first and keep-last by arrival or event time, where the input is an append-only table."""
    inner = maker.base()
    if inner.arrival is None:
        return top_n(maker, depth)
    a, b, rank = maker.name("t"), maker.name("t"), maker.name("r")
    keys = ", ".join(f"{a}.{c.name}" for c in maker.some(inner.ordered[:-1], 1, 2))
    time = maker.chance.choice((f"{a}.{inner.arrival.rowtime}", "PROCTIME()"))
    order = f"{time} {maker.chance.choice(('ASC', 'DESC'))}"
    ranked = (
        f"(SELECT {a}.*, ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {order}) AS {rank} "
        f"FROM {inner.source} AS {a})"
    )
    return maker.select(items(b, inner.columns), f"FROM {ranked} AS {b} WHERE {b}.{rank} = 1", (inner,))


def over(maker: Maker, depth: int) -> Relation:
    """Aggregates, ranks and neighbours over partitions; all calls of one SELECT share their window."""
    inner = maker.relation(depth)
    columns = _sortable(inner)
    if not columns:
        return distinct(maker, depth)
    a = maker.name("t")
    partition = _partition(maker, a, columns)
    ordered = maker.flip(0.75)
    frame = maker.chance.choice(("", "", "", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"))
    total = bool(frame) or maker.flip()
    window = f"{partition}ORDER BY {_order(maker, a, columns, total=total)}{frame}" if ordered else partition
    calls = [
        _over_call(maker, a, columns, ordered and total, frame) for _ in range(maker.chance.randint(1, 2))
    ]
    shown = [*items(a, maker.some(columns, 1, 4)), *((f"{c} OVER ({window})", r) for c, r in calls)]
    return maker.select(shown, f"FROM {inner.source} AS {a}", (inner,))


def _over_call(
    maker: Maker, alias: str, columns: Sequence[Column], total: bool, frame: str
) -> tuple[str, Column]:
    column = maker.chance.choice(list(columns))
    text = f"{alias}.{column.name}"
    calls = [("COUNT(*)", NUMBER), (f"COUNT({text})", NUMBER)]
    if column.type in MINIMA:
        calls += [(f"MIN({text})", column), (f"MAX({text})", column)]
    if column.type in NUMBERS and column.exact:
        calls.append((f"SUM({text})", column))
    if total and not frame:
        calls += [(f"LAG({text})", column), (f"LEAD({text})", column), ("ROW_NUMBER()", NUMBER)]
        calls += [("RANK()", NUMBER), ("DENSE_RANK()", NUMBER)]
    return maker.chance.choice(calls)


def limited(maker: Maker, depth: int) -> Relation:
    """The first rows of all in an order that leaves no ties."""
    inner = maker.relation(depth)
    columns = _sortable(inner)
    if not columns:
        return distinct(maker, depth)
    a = maker.name("t")
    rest = f"FROM {inner.source} AS {a} ORDER BY {_order(maker, a, columns, total=True)}"
    rest += f" LIMIT {maker.chance.randint(1, 6)}"
    if maker.flip(0.2):
        rest += f" OFFSET {maker.chance.randint(1, 3)}"
    return maker.select(items(a, columns), rest, (inner,))
