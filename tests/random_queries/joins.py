"""Random joins, subqueries in conditions and in SELECT lists, and UNNEST."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.random_queries.aggregates import MINIMA
from tests.random_queries.expressions import COMPARISONS, Operand, condition, value
from tests.random_queries.pools import Type
from tests.random_queries.relation import (
    ARRAYS,
    ELEMENTS,
    WHOLE,
    Column,
    Maker,
    Relation,
    items,
    same_type,
)

MEMBERSHIPS = ("IN", "NOT IN")
TRUTHS = ("TRUE", "NOT TRUE", "UNKNOWN", "FALSE")
JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


def join(maker: Maker, depth: int) -> Relation:
    """Two relations by equal columns and perhaps more; the second is often the first again."""
    left = maker.relation(depth)
    right = left if maker.flip(0.2) else maker.relation(depth - 1)
    a, b = maker.name("t"), maker.name("t")
    pairs = (maker.flip() and same_type(left.key, right.key)) or same_type(left.columns, right.columns)
    both = [*items(a, left.columns), *items(b, right.columns)]
    kind, where = maker.chance.choice(JOINS), ""
    if pairs:
        chosen = maker.chance.sample(pairs, min(len(pairs), maker.chance.choice((1, 1, 2))))
        on = " AND ".join(_equal(maker, f"{a}.{x.name}", f"{b}.{y.name}", x) for x, y in chosen)
        if maker.flip(0.35):
            on += f" AND {condition(maker, both)}"
    else:
        kind, on = maker.chance.choice(("JOIN", "LEFT JOIN")), condition(maker, both)
    if maker.flip(0.25):
        where = f" WHERE {condition(maker, both)}"
    shown = maker.chance.sample(both, min(len(both), maker.chance.randint(1, 6)))
    return maker.select(
        shown, f"FROM {left.source} AS {a} {kind} {right.source} AS {b} ON {on}{where}", (left, right)
    )


def _equal(maker: Maker, left: str, right: str, column: Column) -> str:
    """Mostly plain equality; sometimes one that NULLs pass, or one of computed values."""
    if maker.flip(0.15):
        return f"{left} IS NOT DISTINCT FROM {right}"
    if column.type in WHOLE and maker.flip(0.1):
        return f"{left} + 1 = {right}"
    return f"{left} = {right}"


def within(maker: Maker, depth: int) -> Relation:
    """Two append-only tables, one of them maybe twice, by event times that are near each other."""
    timed = [table for table in maker.tables if table.comes]
    if not timed:
        return join(maker, depth)
    left, right = (maker.of(maker.chance.choice(timed)) for _ in range(2))
    a, b = maker.name("t"), maker.name("t")
    before, after = (f"INTERVAL '{maker.chance.choice((0, 1, 4))}' SECOND" for _ in range(2))
    on = f"{a}.rt BETWEEN {b}.rt - {before} AND {b}.rt + {after}" if maker.flip(0.8) else f"{a}.rt = {b}.rt"
    pairs = [(x, y) for x, y in same_type(left.columns, right.columns) if "rt" not in (x.name, y.name)]
    if pairs and maker.flip(0.8):
        x, y = maker.chance.choice(pairs)
        on += f" AND {_equal(maker, f'{a}.{x.name}', f'{b}.{y.name}', x)}"
    both = [*items(a, left.columns), *items(b, right.columns)]
    if maker.flip(0.3):
        on += f" AND {condition(maker, both)}"
    shown = maker.chance.sample(both, min(len(both), maker.chance.randint(1, 6)))
    kind = maker.chance.choice(JOINS)
    return maker.select(
        shown, f"FROM {left.source} AS {a} {kind} {right.source} AS {b} ON {on}", (left, right)
    )


def using(maker: Maker, depth: int) -> Relation:
    """Two tables by the column that all of them have."""
    left, right = maker.base(), maker.base()
    a, b, shared = maker.name("t"), maker.name("t"), Column(name="i", type=Type.INT)
    others = [
        (f"{alias}.{c.name}", c) for alias, r in ((a, left), (b, right)) for c in r.columns if c.name != "i"
    ]
    shown = [("i", shared), *maker.chance.sample(others, min(len(others), 3))]
    kind = maker.chance.choice(JOINS)
    return maker.select(
        shown, f"FROM {left.source} AS {a} {kind} {right.source} AS {b} USING (i)", (left, right)
    )


def chain(maker: Maker, depth: int) -> Relation:
    """Three or four relations, joined one after the other, often by one key."""
    parts = [
        maker.relation(min(depth, maker.chance.choice((0, 0, 1))))
        for _ in range(maker.chance.choice((3, 3, 4)))
    ]
    aliases = [maker.name("t") for _ in parts]
    text, both, key = f"FROM {parts[0].source} AS {aliases[0]}", items(aliases[0], parts[0].columns), ""
    for part, alias in zip(parts[1:], aliases[1:], strict=True):
        pairs = [(o, c) for o in both for c in part.ordered if o[1].ordered and o[1].type is c.type]
        if not pairs:
            continue
        by_one = [p for p in pairs if p[0][0] == key]
        (before, _), column = maker.chance.choice(by_one if by_one and maker.flip(0.7) else pairs)
        key = key or before
        text += f" {maker.chance.choice(JOINS)} {part.source} AS {alias} ON {before} = {alias}.{column.name}"
        both = [*both, *items(alias, part.columns)]
    shown = maker.chance.sample(both, min(len(both), maker.chance.randint(1, 6)))
    return maker.select(shown, text, parts)


def _correlated(maker: Maker, outer: Sequence[Operand], alias: str, inner: Relation) -> str:
    """WHERE of a subquery: equal columns, and perhaps something that is not an equality."""
    pairs = [(o, c) for o in outer for c in inner.ordered if o[1].ordered and o[1].type is c.type]
    if not pairs:
        return f" WHERE {condition(maker, items(alias, inner.columns))}"
    chosen = maker.chance.sample(pairs, min(len(pairs), maker.chance.choice((1, 1, 2))))
    text = " AND ".join(f"{alias}.{c.name} = {o[0]}" for o, c in chosen)
    if maker.flip(0.3):
        text += f" AND {condition(maker, [*outer, *items(alias, inner.columns)])}"
    return f" WHERE {text}"


def exists(maker: Maker, depth: int) -> Relation:
    """Rows with, or without, a partner."""
    left, right = maker.relation(depth), maker.relation(depth - 1)
    a, b = maker.name("t"), maker.name("t")
    word = maker.chance.choice(("EXISTS", "NOT EXISTS"))
    where = _correlated(maker, items(a, left.columns), b, right)
    more = f" AND {condition(maker, items(a, left.columns))}" if maker.flip(0.2) else ""
    rest = f"FROM {left.source} AS {a} WHERE {word} (SELECT 1 FROM {right.source} AS {b}{where}){more}"
    return keyed(maker.select(items(a, left.columns), rest, (left, right)), left)


def keyed(relation: Relation, left: Relation) -> Relation:
    """Rows of ``left``, each at most once, with its columns first: its key is still one."""
    places = [left.columns.index(c) for c in left.key]
    return replace(relation, key=tuple(relation.columns[p] for p in places))


def membership(maker: Maker, depth: int) -> Relation:
    """IN and NOT IN, with all that NULL does to them; sometimes the subquery depends on the row."""
    left, right = maker.relation(depth), maker.relation(depth - 1)
    pairs = same_type(left.columns, right.columns)
    if not pairs:
        return exists(maker, depth)
    a, b = maker.name("t"), maker.name("t")
    chosen = maker.chance.sample(pairs, min(len(pairs), maker.chance.choice((1, 1, 1, 2))))
    tested, given = (
        ", ".join(texts)
        for texts in zip(*((f"{a}.{x.name}", f"{b}.{y.name}") for x, y in chosen), strict=True)
    )
    where = _correlated(maker, items(a, left.columns), b, right) if maker.flip(0.3) else ""
    tested = f"({tested})" if len(chosen) > 1 else tested
    asked = f"{tested} {maker.chance.choice(MEMBERSHIPS)} (SELECT {given} FROM {right.source} AS {b}{where})"
    if maker.flip(0.2):
        asked = f"({asked}) IS {maker.chance.choice(TRUTHS)}"
    elif maker.flip(0.15):
        asked += f" OR {condition(maker, items(a, left.columns))}"
    rest = f"FROM {left.source} AS {a} WHERE {asked}"
    return keyed(maker.select(items(a, left.columns), rest, (left, right)), left)


def lateral(maker: Maker, depth: int) -> Relation:
    """For each row the first few partners."""
    left, right = maker.relation(depth), maker.relation(depth - 1)
    pairs = same_type(left.columns, right.columns)
    if not pairs:
        return exists(maker, depth)
    a, b, v = maker.name("t"), maker.name("t"), maker.name("v")
    (x, y) = maker.chance.choice(pairs)
    columns = right.ordered
    listed = ", ".join(f"{b}.{c.name}" for c in columns)
    rest = f"FROM {right.source} AS {b} WHERE {b}.{y.name} = {a}.{x.name} ORDER BY {listed}"
    inner = f"LATERAL (SELECT {listed} {rest} LIMIT {maker.chance.randint(1, 3)}) AS {v}"
    join, on = maker.chance.choice(((", ", ""), (" CROSS JOIN ", ""), (" LEFT JOIN ", " ON TRUE")))
    shown = [*items(a, maker.some(left.columns, 1, 3)), *items(v, maker.some(columns, 1, 2))]
    return maker.select(shown, f"FROM {left.source} AS {a}{join}{inner}{on}", (left, right))


def scalar(maker: Maker, depth: int) -> Relation:
    """A correlated scalar subquery, shown or compared with."""
    left, right = maker.relation(depth), maker.relation(depth - 1)
    a, b = maker.name("t"), maker.name("t")
    outer = items(a, left.columns)
    pairs = same_type(left.columns, right.columns)
    if not pairs:
        return exists(maker, depth)
    measured = maker.chance.choice(right.ordered)
    function = maker.chance.choice(("MIN", "MAX", "COUNT") if measured.type in MINIMA else ("COUNT",))
    result = Column(name="", type=Type.BIGINT) if function == "COUNT" else measured
    where = _correlated(maker, outer, b, right)
    text = f"(SELECT {function}({b}.{measured.name}) FROM {right.source} AS {b}{where})"
    alike = [o for o in outer if o[1].type is result.type]
    if alike and maker.flip(0.4):
        compared = f"{maker.chance.choice(alike)[0]} {maker.chance.choice(COMPARISONS)} {text}"
        rest = f"FROM {left.source} AS {a} WHERE {compared}"
        return keyed(maker.select(outer, rest, (left, right)), left)
    return keyed(maker.select([*outer, (text, result)], f"FROM {left.source} AS {a}", (left, right)), left)


def unnest(maker: Maker, depth: int) -> Relation:
    """The elements of an array column, beside their rows."""
    inner = maker.relation(depth)
    arrays = inner.of_type(*ARRAYS)
    if not arrays:
        return join(maker, depth)
    array = maker.chance.choice(arrays)
    a, u, e = maker.name("t"), maker.name("u"), maker.name("e")
    element = f"{u}.{e}", Column(name="", type=ELEMENTS[array.type])
    shown = [*items(a, maker.some(inner.columns, 1, 4)), element]
    kind = maker.chance.choice(("CROSS", "LEFT", "INNER"))
    rest = f"{kind} JOIN UNNEST({a}.{array.name}) AS {u} ({e})"
    if kind != "CROSS":
        operands = [*items(a, inner.columns), element]
        rest += f" ON {condition(maker, operands) if maker.flip(0.5) else 'TRUE'}"
    return maker.select(shown, f"FROM {inner.source} AS {a} {rest}", (inner,))


def filtered(maker: Maker, depth: int) -> Relation:
    """A projection, perhaps with a condition."""
    inner = maker.relation(depth)
    a = maker.name("t")
    operands = items(a, inner.columns)
    shown = [value(maker, operands) for _ in range(maker.chance.randint(1, 5))]
    where = f" WHERE {condition(maker, operands)}" if maker.flip(0.6) else ""
    return maker.select(shown, f"FROM {inner.source} AS {a}{where}", (inner,))
