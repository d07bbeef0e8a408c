"""Random temporal joins: rows with the version of their time, of tables of versions and of views that rank;
and rows that look others up when they come, in tables that do not change.

No version and no row is late: a batch knows of no lateness. The tables' watermarks are further behind than
their times are apart, and the side with the smaller delay waits for the other's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.random_queries import aggregates
from tests.random_queries.expressions import Operand, condition
from tests.random_queries.pools import Type
from tests.random_queries.relation import Column, Maker, Relation, items, same_type
from tests.random_queries.tables import LOOKED_UP, ROWTIME

STAMP = Column(name=ROWTIME, type=Type.TIMESTAMP)
KINDS = ("JOIN", "LEFT JOIN")


def as_of(maker: Maker, depth: int) -> Relation:
    """Rows with the version of their time; the rows may be those of a table that changes."""
    timed = [t for t in maker.tables if t.rowtime]
    if not timed:
        return aggregates.grouped(maker, depth)
    left = maker.of(maker.chance.choice(timed))
    joined = _joined(maker, left, maker.name("t"))
    if joined is None:
        return aggregates.grouped(maker, depth)
    shown, others, rest, inputs, view = joined
    key = [item for item in shown if item[1] in left.key]
    listed = [*key, *_some(maker, [x for x in shown if x not in key], 1, 3), *_some(maker, others, 1, 3)]
    made = maker.select(listed, rest, inputs)
    return replace(made, source=f"({view}{made.source[1:]}", key=made.columns[: len(key)])


def timed(maker: Maker, left: Relation) -> Relation:
    """Rows of a table as it comes or changes with the version of their time, which is still an event time."""
    joined = _joined(maker, left, maker.name("t"))
    if joined is None:
        return left
    shown, others, rest, inputs, view = joined
    time = shown.pop()
    named = [(text, replace(c, name=maker.name("c"))) for text, c in [*shown, *_some(maker, others, 1, 3)]]
    named.append((time[0], STAMP))
    listed = ", ".join(f"{text} AS {column.name}" for text, column in named)
    columns = tuple(column for _, column in named)
    source = f"({view}SELECT {listed} {rest})"
    return Relation(source=source, columns=columns, inputs=inputs, arrival=left.arrival, at_its_time=True)


Joined = tuple[list[Operand], list[Operand], str, tuple[Relation, ...], str]
"""What may be shown of the left side and of the version, FROM with all that follows, the inputs, and WITH."""


def _joined(maker: Maker, left: Relation, alias: str) -> Joined | None:
    """``left`` has its time last; None where no key of versions has the type of a column of it."""
    arrives = [t for t in maker.tables if t.comes]
    right = maker.chance.choice(maker.versions) if not arrives or maker.flip(0.65) else None
    version = maker.name("t")
    if right is not None:
        found = _table_of_versions(maker, left, maker.of(right), alias, version)
    else:
        found = _view(maker, left, maker.of(maker.chance.choice(arrives)), alias, version)
    if found is None:
        return None
    source, on, shown, view = found
    operands = [*items(alias, left.columns), *items(version, shown)]
    others = same_type(left.ordered[:-1], shown)
    if others and maker.flip(0.3):
        p, q = maker.chance.choice(others)
        on.append(f"{alias}.{p.name} {maker.chance.choice(('=', '<>'))} {version}.{q.name}")
    elif maker.flip(0.3):
        on.append(condition(maker, operands))
    rest = f"FROM {left.source} AS {alias} {maker.chance.choice(KINDS)} {source} FOR SYSTEM_TIME AS OF "
    rest += f"{alias}.{ROWTIME} AS {version} ON {' AND '.join(on)}"
    if maker.flip(0.15):
        rest += f" WHERE {condition(maker, operands)}"
    inputs = (left,) if right is None else (left, maker.of(right))
    return items(alias, left.columns), items(version, shown), rest, inputs, view


Side = tuple[str, list[str], list[Column], str]
"""A versioned table in FROM, the equalities of its key, its other columns, and WITH where it is a view."""


def _table_of_versions(
    maker: Maker, left: Relation, right: Relation, alias: str, version: str
) -> Side | None:
    on = []
    for key in right.key:
        alike = [c for c in left.columns[:-1] if c.type is key.type]
        if not alike:
            return None
        equal = "=" if maker.flip(0.9) else "IS NOT DISTINCT FROM"
        on.append(f"{alias}.{maker.chance.choice(alike).name} {equal} {version}.{key.name}")
    return right.source, on, list(right.columns), ""


def _view(maker: Maker, left: Relation, right: Relation, alias: str, version: str) -> Side | None:
    pairs = same_type(left.ordered[:-1], right.ordered[:-1])
    if not pairs:
        return None
    x, y = maker.chance.choice(pairs)
    shown = maker.some([c for c in right.columns[:-1] if c is not y], 1, 2)
    view = maker.name("v")
    text = f"WITH {view} AS ({_versions(maker, right, y, shown)}) "
    return view, [f"{alias}.{x.name} = {version}.{y.name}"], shown, text


def _versions(maker: Maker, table: Relation, key: Column, shown: list[Column]) -> str:
    """The first row of each key by time, or by some order of all columns."""
    assert table.arrival is not None
    names = ", ".join(c.name for c in (key, *shown))
    total = ", ".join(f"{c.name}{maker.chance.choice(('', ' DESC'))}" for c in maker.some(table.ordered, 1))
    order = maker.chance.choice((f"{ROWTIME} DESC", f"{ROWTIME} DESC, {total}", total))
    source = f"(SELECT {names}, {ROWTIME} FROM {table.source})"
    if all(c.ordered for c in shown) and table.arrival.sorted and maker.flip(0.3):
        # What comes late to its group is no version any more, and in a batch nothing is late.
        source = f"(SELECT DISTINCT {names}, {ROWTIME} FROM {table.source})"
        order = f"{ROWTIME} DESC, {names}"
    elif order != f"{ROWTIME} DESC":
        source = table.source
    ranked = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {key.name} ORDER BY {order}) AS place FROM {source}"
    where = f" AND {maker.chance.choice(shown).name} IS NOT NULL" if maker.flip(0.3) else ""
    return f"SELECT {names}, {ROWTIME} FROM ({ranked}) WHERE place = 1{where}"


def looked_up(maker: Maker, depth: int) -> Relation:
    """Rows, and those of a table that do not change as they are when the rows come."""
    left, table = maker.relation(depth), maker.chance.choice(maker.tables)
    right = maker.of(table)
    pairs = same_type(left.columns, right.columns)
    if not pairs:
        return aggregates.grouped(maker, depth)
    a, b, now = maker.name("t"), maker.name("t"), maker.name("n")
    chosen = maker.chance.sample(pairs, min(len(pairs), maker.chance.choice((1, 1, 2))))
    # Keys are asked for in the column's own type, which sums of DECIMAL do not have.
    on = " AND ".join(f"{_of_type(f'{a}.{x.name}', y)} = {b}.{y.name}" for x, y in chosen)
    operands = [*items(a, left.columns), *items(b, right.columns)]
    if maker.flip(0.3):
        on += f" AND {condition(maker, operands)}"
    inner = f"(SELECT *, PROCTIME() AS {now} FROM {left.source} AS {maker.name('t')})"
    rest = f"FROM {inner} AS {a} {maker.chance.choice(KINDS)} {LOOKED_UP}{table.name} "
    rest += f"FOR SYSTEM_TIME AS OF {a}.{now} AS {b} ON {on}"
    return maker.select(_some(maker, operands, 1, 6), rest, (left, right))


def _of_type(text: str, column: Column) -> str:
    return f"CAST({text} AS {column.type.value})" if column.type is Type.DECIMAL else text


def _some(maker: Maker, operands: Sequence[Operand], least: int, most: int) -> list[Operand]:
    count = maker.chance.randint(min(least, len(operands)), min(most, len(operands)))
    return maker.chance.sample(list(operands), count)
