"""Every entry for Arrow against the Spark text, over hostile values: two translations, one meaning."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import pytest
from pyspark.sql import SparkSession

from tests.functions.array_calls import call, cast, differences, rows, translated
from tests.functions.random_calls import random_expression
from tidemill.functions import registry
from tidemill.plan import expressions as x
from tidemill.types import logical as t

INTEGERS, FLOATS, EXACT = "ysijbc", "def", "ysijbcmn"
UNITS = ("YEAR", "QUARTER", "MONTH", "DAY", "DOY", "DOW", "ISODOW", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
FLOOR_UNITS = ("MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
PATTERNS = ("(&|^)channel_id=([^&]*)", "a", "[a-z]+", "^b?", "(b|ab)c*", r"\.", "(?:x)[^/]*/", "[0-9]")
DECIMALS = tuple(
    t.DecimalType(precision=p, scale=s)
    for p, s in ((19, 0), (23, 3), (8, 2), (5, 1), (3, 3), (10, 0), (38, 8))
)


def _arithmetic() -> Iterator[x.Expr]:
    for name in "+-*":
        yield from (call(name, *pair) for pair in ("ys", "ij", "ib", "bc", "de", "mm", "mn", "im", "ff"))
        yield from (call(name, "b", 908), call(name, "d", 0.1))
    for name, pair in product(("/", "%"), ("ij", "bc", "ib", "ys")):
        yield call("CASE", call("<>", pair[1], 0), call(name, *pair), None)
    yield from (call("%", a, n) for a, n in product(INTEGERS, (1, -1, 7, 123)))
    yield from (call("/", a, n) for a, n in product("ib", (1, -1, 7)))
    yield from (call("/", "d", "e"), call("/", "d", 0.0), call("MOD", "b", 123))
    yield from (call(name, a) for name, a in product(("UNARY -", "UNARY +", "ABS"), "ysibdfm"))
    yield from (call("ROUND", a, n) for a, n in product("ybmnw", (0, 1, 3, 7)))
    yield from (call("ROUND", a) for a in "imn")
    yield from (call(name, a) for name, a in product(("FLOOR", "CEIL", "CEILING"), "ydf"))
    yield from (call("SQRT", a) for a in "dif")


def _comparisons() -> Iterator[x.Expr]:
    pairs = ("ij", "ib", "yc", "de", "ff", "di", "mi", "mn", "bm", "tu", "tv", "gh", "kk", "ll", "gg")
    yield from (call(name, *pair) for name, pair in product(("=", "<>", "<", ">", "<=", ">="), pairs))
    yield from (call("=", "p", "q"), call("<>", "p", "q"), call("=", "t", "a"), call("<", "i", 2))
    yield from (call("BETWEEN", "i", -1, "j"), call("BETWEEN", "t", "A", "u"), call("BETWEEN", "m", 0, "i"))
    yield from (call("IN", "i", 1, 2, -1), call("IN", "b", 2, 5), call("IN", "t", "ab", "", "é"))
    yield from (call(name, "p", "q") for name in ("AND", "OR"))
    yield call("AND", "p", "q", call("OR", "q", "p"))
    tests = ("IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "NOT", "IS NULL", "IS NOT NULL")
    yield from (call(name, "p") for name in tests)
    yield from (call(name, a) for name, a in product(("IS NULL", "IS NOT NULL"), "idmtgkl"))


def _choices() -> Iterator[x.Expr]:
    yield call("CASE", "p", "i", "q", "j", "b")
    yield call("CASE", "p", "xx", "q", "y y", "t")
    yield call("CASE", call("=", "i", 0), 1, call("%", 10, "i"))
    yield call("IF", "p", "m", "n")
    yield from (call("COALESCE", *a) for a in ("ij", "ib", "tu", "gh", "kk", "de"))
    yield call("COALESCE", "t", "none")
    yield from (call("NULLIF", *a) for a in ("ij", "bc", "tu", "mm"))
    yield call("IFNULL", "j", -5)
    alike = ("ij", "ib", "tu", "gh", "kk", "mm", "mn", "bm", "ll", "tv", "ww")
    yield from (call(name, *a) for name, a in product(("GREATEST", "LEAST"), alike))
    yield from (call(name, "i", 7, "j") for name in ("GREATEST", "LEAST"))
    yield from (call(f"IS {no}DISTINCT FROM", *a) for no, a in product(("", "NOT "), (*alike, "pq")))
    yield call("IS DISTINCT FROM", "i", 2)


def _casts() -> Iterator[x.Expr]:
    numbers = (t.TinyIntType(), t.SmallIntType(), t.INT, t.BIGINT, t.FloatType(), t.DOUBLE)
    yield from (cast(a, kind) for a, kind in product((*INTEGERS, *FLOATS), numbers))
    yield from (cast(a, kind) for a, kind in product("ysibmn", DECIMALS))
    yield from (cast(a, t.STRING) for a in ("y", "i", "b", "v", "t", *"mnghkl"))
    for digits in (6, 9):
        yield cast(cast("h", t.TimestampType(precision=digits)), t.STRING)
    yield cast("v", t.VarCharType(length=20))
    yield from (cast("g", t.TimestampType(precision=6)), cast("h", t.DATE), cast("l", t.DATE))
    instant = t.LocalZonedTimestampType(precision=3)
    yield from (cast("g", t.STRING), cast("l", t.STRING), cast("l", t.TimestampType(precision=3)))
    yield from (cast("g", instant), cast(cast("l", t.TimestampType(precision=6)), t.DATE))
    yield from (cast("m", t.DOUBLE), cast("n", t.DOUBLE), cast("w", t.DOUBLE))
    yield from (cast("r", kind, safe=True) for kind in (*numbers, *DECIMALS))


def _texts() -> Iterator[x.Expr]:
    yield from (
        call(name, "t") for name in ("LOWER", "UPPER", "CHAR_LENGTH", "TRIM", "LTRIM", "RTRIM", "BTRIM")
    )
    yield from (call("TRIM", "t", " ax", MODE=mode) for mode in ("BOTH", "LEADING", "TRAILING"))
    yield from (call("CONCAT", "t", "-", "u"), call("||", "t", "v"), call("CONCAT", "v"))
    yield from (call("SUBSTRING", "t", start, 3) for start in (0, 1, 2, 9))
    yield from (call("SUBSTRING", "t", 2), call("SUBSTRING", "t", 1, 0), call("SUBSTRING", "u", 2, 2**31 - 1))
    yield from (call("LEFT", "t", n) for n in (0, 1, 5))
    yield from (call("REPLACE", "t", "a", "<>"), call("REPLACE", "t", "ab", ""))
    yield from (call("SPLIT_INDEX", "t", s, n) for s, n in product("/&.", (0, 1, 3)))
    likes = ("%", "a%", "%b", "%a%", "ab", "", "%%", "a%b", "ab%b", "%\\%", "é%")
    yield from (call("LIKE", "t", pattern) for pattern in likes)
    yield from (call(name, "t", part) for name, part in product(("STARTSWITH", "ENDSWITH"), ("a", "", "é/")))
    yield from (call(name, "t", p) for name, p in product(("REGEXP", "REGEXP_EXTRACT"), PATTERNS))
    yield from (call("REGEXP_EXTRACT", "t", PATTERNS[0], group) for group in (0, 2))
    yield call("REGEXP_EXTRACT", "t", "(a)[^/]*/(b*)", 2)
    replaced = [p for p in PATTERNS if p not in ("^b?",)]
    yield from (call("REGEXP_REPLACE", "t", p, new) for p, new in product(replaced, ("", "<é>")))
    yield from (call("CONCAT_WS", s, "t", "u", "v") for s in ("-", "v"))
    yield from (call("RIGHT", "t", n) for n in (0, 1, 5))
    yield from (call("REPEAT", "t", n) for n in (0, 1, 3))
    yield from (call(name, "t", n, "*") for name, n in product(("LPAD", "RPAD"), (0, 1, 7)))
    yield call("REVERSE", "t")
    yield from (call(name, n, "t") for name, n in product(("POSITION", "LOCATE"), ("a", "ple", "")))
    yield from (call("INSTR", "t", n) for n in ("a", "ple", ""))


def _times() -> Iterator[x.Expr]:
    yield from (call("EXTRACT", a, unit=unit) for a, unit in product("ghl", UNITS))
    yield from (call("EXTRACT", "k", unit=unit) for unit in UNITS[:7])
    yield from (call(name, "g") for name in ("HOUR", "DAYOFMONTH", "YEAR", "DAYOFWEEK"))
    yield from (call("FLOOR", a, unit=unit) for a, unit in product("hl", FLOOR_UNITS))
    day, second = (t.DayTimeIntervalType(nullable=False) for _ in range(2))
    spans = (x.Literal(type=day, value=86_400_000), x.Literal(type=second, value=-1500))
    yield from (call(name, a, span) for name, a, span in product("+-", "ghl", spans))
    yield from (call("+", span, "g") for span in spans)
    yield call("TO_TIMESTAMP", cast("g", t.STRING))
    yield call("TO_DATE", cast("k", t.STRING))
    yield from (cast(cast("k", t.STRING), t.DATE), cast("o", t.DATE, safe=True))
    stamps = (t.TimestampType(precision=digits) for digits in (3, 6))
    yield from (cast(a, kind, safe=True) for a, kind in product(("o", cast("g", t.STRING)), stamps))
    yield from (call(name, "o") for name in ("TO_DATE", "TO_TIMESTAMP"))
    elapsed = product(("gh", "gg", "hg", "ll"), ("SECOND", "MINUTE", "HOUR", "DAY"))
    yield from (call("TIMESTAMPDIFF", *a, unit=unit) for a, unit in elapsed)
    patterns = ("yyyy-MM-dd", "yyyy-MM-dd HH:mm", "HH:mm:ss.SSS", "yyyyMMddHHmmss", "dd/MM/yyyy", "mm")
    yield from (call("DATE_FORMAT", a, p) for a, p in product("ghl", patterns))
    yield from (
        call("TO_TIMESTAMP_LTZ", "i"),
        call("TO_TIMESTAMP_LTZ", "s", 0),
        call("TO_TIMESTAMP_LTZ", "y", 3),
    )


FAMILIES = {f.__name__: f for f in (_arithmetic, _comparisons, _choices, _casts, _texts, _times)}


@pytest.mark.every_case
@pytest.mark.parametrize("family", FAMILIES)
def test_every_entry(spark: SparkSession, family: str) -> None:
    assert differences(spark, list(FAMILIES[family]()), rows(150, seed=len(family))) == []


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(6))
def test_random_expressions(spark: SparkSession, seed: int) -> None:
    chooser = random.Random(seed)
    made = [random_expression(chooser, 3) for _ in range(200)]
    assert differences(spark, [e for e in made if translated(e) is not None], rows(60, seed)) == []


def test_all_entries_are_compared() -> None:
    """A function with an entry stands in one of the families."""
    named = {
        e.function for f in FAMILIES.values() for whole in f() for e in whole.walk() if isinstance(e, x.Call)
    }
    entries = {name for name in registry.names() if (f := registry.scalar(name)) and f.arrays is not None}
    aliases = {"CHARACTER_LENGTH", "SUBSTR", "IS UNKNOWN", "IS NOT UNKNOWN"}
    short_forms = {"QUARTER", "MONTH", "DAYOFYEAR", "MINUTE", "SECOND", "WEEK"}
    assert entries - named == aliases | short_forms
