"""Random typed expressions over the columns of ``array_calls``, of functions with entries for Arrow."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.functions.array_calls import call, cast, column
from tidemill.functions.api import SignatureError
from tidemill.plan import expressions as x
from tidemill.types import logical as t

Make = Callable[[random.Random, int], x.Expr]
_NUMBERS = (t.SmallIntType(), t.INT, t.BIGINT, t.DOUBLE, t.DecimalType(precision=12, scale=3))
_UNITS = ("YEAR", "MONTH", "DAY", "DOW", "HOUR", "SECOND", "MILLISECOND")


def random_expression(chooser: random.Random, depth: int) -> x.Expr:
    """An expression of any type, at most so deep."""
    return _any_of(chooser, (_number, _truth, _text, _time), depth)


def _any_of(chooser: random.Random, makers: tuple[Make, ...], depth: int) -> x.Expr:
    while True:
        try:
            return chooser.choice(makers)(chooser, depth)
        except SignatureError:  # these types do not go together
            continue


def _number(chooser: random.Random, depth: int) -> x.Expr:
    if depth == 0:
        return column(chooser.choice("ysijbcdemn"))
    ways: tuple[Make, ...] = (_sum, _guarded_quotient, _number_cast, _part_of_time, _length, _case(_number))
    return _any_of(chooser, (*ways, _extreme, _plain_number), depth - 1)


def _extreme(chooser: random.Random, depth: int) -> x.Expr:
    """Of whole numbers: floating ones have no kernel."""
    return call(
        chooser.choice(("GREATEST", "LEAST")), column(chooser.choice("ysijbc")), _length(chooser, depth)
    )


def _plain_number(chooser: random.Random, depth: int) -> x.Expr:
    if chooser.random() < 0.5:
        return call("ABS", _number(chooser, depth))
    return call("ROUND", column(chooser.choice("ysijbcmn")), chooser.randrange(4))


def _sum(chooser: random.Random, depth: int) -> x.Expr:
    right = chooser.choice((_number(chooser, depth), 1, -7))
    return call(chooser.choice("+-*"), _number(chooser, depth), right)


def _guarded_quotient(chooser: random.Random, depth: int) -> x.Expr:
    left, right = column(chooser.choice("ysijbc")), _number(chooser, depth)
    divided = call(chooser.choice(("/", "%")), left, right)
    return call("CASE", call("<>", right, 0), divided, None)


def _number_cast(chooser: random.Random, depth: int) -> x.Expr:
    return cast(_number(chooser, depth), chooser.choice(_NUMBERS))


def _part_of_time(chooser: random.Random, depth: int) -> x.Expr:
    return call("EXTRACT", _time(chooser, depth), unit=chooser.choice(_UNITS))


def _length(chooser: random.Random, depth: int) -> x.Expr:
    return call("CHAR_LENGTH", _text(chooser, depth))


def _case(of: Make) -> Make:
    def make(chooser: random.Random, depth: int) -> x.Expr:
        name = chooser.choice(("CASE", "IF", "COALESCE", "NULLIF"))
        values = of(chooser, depth), of(chooser, depth)
        return call(name, *((_truth(chooser, depth),) if name in ("CASE", "IF") else ()), *values)

    return make


def _truth(chooser: random.Random, depth: int) -> x.Expr:
    if depth == 0:
        return column(chooser.choice("pq"))
    return _any_of(chooser, (_comparison, _connected, _tested, _matched), depth - 1)


def _comparison(chooser: random.Random, depth: int) -> x.Expr:
    of = chooser.choice((_number, _number, _text, _time))
    return call(chooser.choice(("=", "<>", "<", ">=")), of(chooser, depth), of(chooser, depth))


def _connected(chooser: random.Random, depth: int) -> x.Expr:
    return call(chooser.choice(("AND", "OR")), _truth(chooser, depth), _truth(chooser, depth))


def _tested(chooser: random.Random, depth: int) -> x.Expr:
    return call(chooser.choice(("NOT", "IS TRUE", "IS NOT FALSE", "IS NULL")), _truth(chooser, depth))


def _matched(chooser: random.Random, depth: int) -> x.Expr:
    name, pattern = chooser.choice(
        (("LIKE", "%a%"), ("LIKE", "a%"), ("REGEXP", "[a-z]/"), ("STARTSWITH", "A"))
    )
    return call(name, _text(chooser, depth), pattern)


def _text(chooser: random.Random, depth: int) -> x.Expr:
    if depth == 0:
        return column(chooser.choice("tuv"))
    return _any_of(chooser, (_changed, _joined, _cut, _written, _case(_text)), depth - 1)


def _changed(chooser: random.Random, depth: int) -> x.Expr:
    return call(chooser.choice(("LOWER", "UPPER", "TRIM", "RTRIM")), _text(chooser, depth))


def _joined(chooser: random.Random, depth: int) -> x.Expr:
    return call(chooser.choice(("CONCAT", "||")), _text(chooser, depth), _text(chooser, depth))


def _cut(chooser: random.Random, depth: int) -> x.Expr:
    name, *rest = chooser.choice(
        (
            ("SPLIT_INDEX", "/", 1),
            ("SUBSTRING", 2, 3),
            ("LEFT", 2),
            ("REPLACE", "a", "xy"),
            ("REGEXP_EXTRACT", "a+"),
        )
    )
    return call(str(name), _text(chooser, depth), *rest)


def _written(chooser: random.Random, depth: int) -> x.Expr:
    if chooser.random() < 0.5:
        return cast(column(chooser.choice("yijb")), t.STRING)
    return call("DATE_FORMAT", _time(chooser, depth), "yyyy-MM-dd HH:mm")


def _time(chooser: random.Random, depth: int) -> x.Expr:
    if depth == 0:
        return column(chooser.choice("gghl"))
    unit = chooser.choice(("SECOND", "HOUR", "DAY", "MONTH"))
    return call("FLOOR", _time(chooser, depth - 1), unit=unit)
