"""Random scalar expressions and conditions over the columns of aliases."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.random_queries.pools import Type
from tests.random_queries.relation import NUMBERS, Column, Maker

Operand = tuple[str, Column]
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def condition(maker: Maker, operands: Sequence[Operand], depth: int = 1) -> str:
    """A condition over the operands; TRUE where none can be compared."""
    usable = [o for o in operands if o[1].ordered]
    if not usable:
        return "TRUE"
    if depth and maker.flip(0.3):
        left, right = (condition(maker, operands, depth - 1) for _ in range(2))
        return maker.chance.choice((f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"))
    operand = maker.chance.choice(usable)
    return maker.chance.choice(TESTS)(maker, operand, usable)


def _with_literal(maker: Maker, operand: Operand, operands: Sequence[Operand]) -> str:
    text, column = operand
    return f"{text} {maker.chance.choice(COMPARISONS)} {maker.literal(column.type)}"


def _with_column(maker: Maker, operand: Operand, operands: Sequence[Operand]) -> str:
    text, column = operand
    alike = [t for t, c in operands if c.type is column.type or {c.type, column.type} <= set(NUMBERS)]
    return f"{text} {maker.chance.choice(COMPARISONS)} {maker.chance.choice(alike)}"


def _is_null(maker: Maker, operand: Operand, operands: Sequence[Operand]) -> str:
    return f"{operand[0]} IS {maker.chance.choice(('', 'NOT '))}NULL"


def _in_list(maker: Maker, operand: Operand, operands: Sequence[Operand]) -> str:
    text, column = operand
    listed = ", ".join(maker.literal(column.type) for _ in range(maker.chance.randint(1, 3)))
    return f"{text} {maker.chance.choice(('', 'NOT '))}IN ({listed})"


def _between(maker: Maker, operand: Operand, operands: Sequence[Operand]) -> str:
    text, column = operand
    low, high = (maker.literal(column.type) for _ in range(2))
    return f"{text} BETWEEN {low} AND {high}"


def _distinct_from(maker: Maker, operand: Operand, operands: Sequence[Operand]) -> str:
    text, column = operand
    alike = [t for t, c in operands if c.type is column.type]
    return f"{text} IS {maker.chance.choice(('', 'NOT '))}DISTINCT FROM {maker.chance.choice(alike)}"


def _by_function(maker: Maker, operand: Operand, operands: Sequence[Operand]) -> str:
    """What no kernel computes: where the operands are of both sides of a join, Spark does."""
    text, column = operand
    other = maker.chance.choice([t for t, c in operands if c.type is column.type])
    if column.type is Type.STRING:
        forms = (
            f"{text} LIKE {other} || '%'",
            f"POSITION({other} IN {text}) > 1",
            f"UPPER({text}) = {other}",
        )
        return maker.chance.choice(forms)
    return f"GREATEST({text}, {other}) = {text}"


TESTS: tuple[Callable[[Maker, Operand, Sequence[Operand]], str], ...] = (
    _with_literal,
    _with_literal,
    _with_column,
    _is_null,
    _in_list,
    _between,
    _distinct_from,
    _by_function,
)


def value(maker: Maker, operands: Sequence[Operand]) -> Operand:
    """A column, or something computed of columns; the operands must not be empty."""
    text, column = maker.chance.choice(list(operands))
    if maker.flip(0.6):
        return text, column
    return _COMPUTED.get(column.type, _guarded)(maker, (text, column), operands)


def _guarded(maker: Maker, operand: Operand, operands: Sequence[Operand]) -> Operand:
    text, column = operand
    return f"CASE WHEN {condition(maker, operands)} THEN {text} END", column


def _whole(maker: Maker, operand: Operand, operands: Sequence[Operand]) -> Operand:
    text, column = operand
    forms = (
        f"{text} + 1",
        f"MOD({text}, 2)",
        f"COALESCE({text}, 7)",
        f"NULLIF({text}, 1)",
        f"CASE WHEN {condition(maker, operands)} THEN {text} ELSE 3 END",
    )
    chosen = maker.chance.choice(forms)
    return f"CAST({chosen} AS {column.type.value})", column


def _text(maker: Maker, operand: Operand, operands: Sequence[Operand]) -> Operand:
    text, column = operand
    forms = (f"UPPER({text})", f"{text} || 'x'", f"COALESCE({text}, 'none')")
    return maker.chance.choice(forms), column


def _size(maker: Maker, operand: Operand, operands: Sequence[Operand]) -> Operand:
    return f"CARDINALITY({operand[0]})", Column(name="", type=Type.INT)


def _boolean(maker: Maker, operand: Operand, operands: Sequence[Operand]) -> Operand:
    text, column = operand
    return maker.chance.choice((f"NOT {text}", f"({text} IS NOT TRUE)", f"COALESCE({text}, FALSE)")), column


_COMPUTED: dict[Type, Callable[[Maker, Operand, Sequence[Operand]], Operand]] = {
    Type.INT: _whole,
    Type.BIGINT: _whole,
    Type.TINYINT: _whole,
    Type.SMALLINT: _whole,
    Type.STRING: _text,
    Type.INTS: _size,
    Type.STRINGS: _size,
    Type.BOOLEAN: _boolean,
}
