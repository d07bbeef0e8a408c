"""Random aggregation, DISTINCT and set operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.random_queries.expressions import Operand, condition, value
from tests.random_queries.pools import Type
from tests.random_queries.relation import FLOATS, NUMBERS, Column, Maker, Relation, items

SET_OPERATIONS = ("UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
MINIMA = (*NUMBERS, Type.STRING, Type.TIMESTAMP, Type.CHAR, Type.DATE, Type.TIME, Type.INSTANT)


def aggregate(maker: Maker, operands: Sequence[Operand]) -> Operand:
    """An aggregate call and what it gives."""
    calls = [("COUNT(*)", Column(name="", type=Type.BIGINT))]
    ordered = [o for o in operands if o[1].ordered]
    if ordered:
        text, column = value(maker, ordered)
        calls += _calls(maker, text, column)
    call, result = maker.chance.choice(calls[1:] or calls) if maker.flip(0.85) else calls[0]
    if maker.flip(0.2):
        call += f" FILTER (WHERE {condition(maker, operands)})"
    return call, result


def _calls(maker: Maker, text: str, column: Column) -> list[Operand]:
    count = Column(name="", type=Type.BIGINT)
    distinct = maker.chance.choice(("", "", "DISTINCT "))
    calls = [(f"COUNT({text})", count), (f"COUNT(DISTINCT {text})", count)]
    if column.type in MINIMA:
        calls += [(f"{f}({text})", column) for f in ("MIN", "MAX")]
    if column.type in NUMBERS and column.exact:
        average = Column(name="", type=column.type, exact=column.type not in FLOATS)
        calls += [(f"SUM({distinct}{text})", column), (f"AVG({distinct}{text})", average)]
    return calls


def grouped(maker: Maker, depth: int) -> Relation:
    """GROUP BY some columns, or none: then a stream has no row for nothing, nor has the batch."""
    inner = maker.relation(depth)
    a = maker.name("t")
    operands = items(a, inner.columns)
    keys = items(a, maker.some(inner.ordered, 0 if maker.flip(0.15) else 1, 2))
    calls = [aggregate(maker, operands) for _ in range(maker.chance.randint(0 if keys else 1, 4))]
    rest, grouping = f"FROM {inner.source} AS {a}", ""
    if maker.flip(0.25):
        rest += f" WHERE {condition(maker, operands)}"
    if keys:
        grouping = _grouping(maker, [text for text, _ in keys])
        rest += f" GROUP BY {grouping}"
    if not keys:
        rest += " HAVING COUNT(*) > 0"
    elif maker.flip(0.25):
        rest += f" HAVING {condition(maker, [aggregate(maker, operands), *keys])}"
    relation = maker.select([*keys, *calls], rest, (inner,))
    unique = bool(keys) and "(" not in grouping
    return replace(relation, key=relation.columns[: len(keys)] if unique else ())


def _grouping(maker: Maker, keys: list[str]) -> str:
    listed = ", ".join(keys)
    if maker.flip(0.9):
        return listed
    sets = f"GROUPING SETS (({listed}), ({keys[0]}))"
    return maker.chance.choice((f"ROLLUP ({listed})", f"CUBE ({listed})", sets)) if len(keys) > 1 else sets


def distinct(maker: Maker, depth: int) -> Relation:
    inner = maker.relation(depth)
    a = maker.name("t")
    shown = items(a, maker.some(inner.ordered, 1, 3))
    if not shown:
        return grouped(maker, depth)
    return maker.select(shown, f"FROM {inner.source} AS {a}", (inner,), distinct=True)


def doubled(maker: Maker, depth: int) -> Relation:
    """Every row twice or more, the copies in one place of the sequence."""
    inner = maker.relation(depth)
    a, times = maker.name("t"), maker.chance.choice((2, 2, 3))
    listed = ", ".join(f"{a}.{c.name}" for c in inner.columns)
    branch = f"SELECT {listed} FROM {inner.source} AS {a}"
    return Relation(
        source=f"({' UNION ALL '.join([branch] * times)})", columns=inner.columns, inputs=(inner,)
    )


def set_operation(maker: Maker, depth: int) -> Relation:
    """Two relations of the same types, often two views of one."""
    left = maker.relation(depth)
    right = left if maker.flip(0.3) else maker.relation(depth - 1)
    a, b = maker.name("t"), maker.name("t")
    pairs = _matched(maker, left, right)
    if not pairs:
        return distinct(maker, depth)
    branches = [
        f"SELECT {', '.join(f'{alias}.{c.name}' for c in columns)} FROM {relation.source} AS {alias}{where}"
        for alias, relation, columns, where in (
            (a, left, [x for x, _ in pairs], _where(maker, a, left)),
            (b, right, [y for _, y in pairs], _where(maker, b, right)),
        )
    ]
    names = [maker.name("c") for _ in pairs]
    columns = tuple(
        Column(name=n, type=x.type, exact=x.exact and y.exact) for n, (x, y) in zip(names, pairs, strict=True)
    )
    word = maker.chance.choice(SET_OPERATIONS)
    both = f"({branches[0]} {word} {branches[1]})"
    return Relation(
        source=f"(SELECT * FROM {both} AS {maker.name('t')} ({', '.join(names)}))",
        columns=columns,
        inputs=(left, right),
    )


def _where(maker: Maker, alias: str, relation: Relation) -> str:
    return f" WHERE {condition(maker, items(alias, relation.columns))}" if maker.flip(0.4) else ""


def _matched(maker: Maker, left: Relation, right: Relation) -> list[tuple[Column, Column]]:
    """Columns of the same type, each used once."""
    pairs, free = [], list(right.ordered)
    for column in maker.some(left.ordered, 1, 3):
        for other in free:
            if other.type is column.type:
                pairs.append((column, other))
                free.remove(other)
                break
    return pairs
