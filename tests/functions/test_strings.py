"""String functions at their edges: empty text, positions out of range, NULL, characters of two units."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.functions.evaluating import Case, Typed, check, resolve, spark_text
from tidemill.errors import NotSupportedError
from tidemill.functions.api import SignatureError
from tidemill.types import logical as t


def _cases(name: str, *rows: tuple[tuple[object, ...], object]) -> list[Case]:
    return [Case(name, args, expected) for args, expected in rows]


BUILDING = [
    *_cases("CONCAT", (("a", "b", "c"), "abc"), (("a", None), None)),
    *_cases("CONCAT_WS", ((",", "a", None, "b"), "a,b"), ((None, "a"), None), ((",",), "")),
    *_cases("UPPER", (("ß1a",), "SS1A")),
    *_cases(
        "INITCAP", (("aBC dEF foo-bar_baz 1st o'neil",), "Abc Def Foo-Bar_Baz 1st O'Neil"), (("ünÏ",), "Ünï")
    ),
    *_cases("REVERSE", (("a😀b",), "b😀a")),
    *_cases("REPEAT", (("ab", 2), "abab"), (("ab", -1), "")),
    *_cases("LTRIM", (("xyxa", "xy"), "a"), (("  a ",), "a "), ((" a", None), None)),
    *_cases("BTRIM", (("xyaxy", "xy"), "a"), ((" a ",), "a")),
    *_cases("CHR", ((353,), "a"), ((-1,), ""), ((200,), "È")),
    *_cases("ASCII", (("",), 0), (("é",), 233)),
    *_cases("ELT", ((1, "a", "b"), "a"), ((3, "a", "b"), None), ((0, "a"), None)),
]
CUTTING = [
    *_cases("SUBSTRING", (("hello", 2), "ello"), (("hello", -3), "llo"), (("hello", 0, 2), "he")),
    *_cases("SUBSTRING", (("hello", 2, -1), None), (("hello", -6, 2), ""), (("hello", -5, 2), "he")),
    *_cases("SUBSTRING", (("hello", 2147483647, 2), ""), (("hello", 2, 2147483647), "ello")),
    *_cases("LEFT", (("hello", -1), ""), (("a😀b", 2), "a😀")),
    *_cases("RIGHT", (("hello", 0), ""), (("hello", 9), "hello")),
    *_cases(
        "LPAD",
        (("hi", 4, "??"), "??hi"),
        (("hi", -1, "?"), None),
        (("hi", 1, ""), None),
        (("hi", 0, "?"), ""),
    ),
    *_cases(
        "LPAD", (("Ü 😀 z", 8, "*-"), "*-Ü 😀 z"), (("Ü 😀 z", 6, "*"), "Ü 😀 z"), (("a", 4, "😀"), "😀😀a")
    ),
    *_cases("RPAD", (("hi", 5, "ab"), "hiaba"), (("Ü 😀 z", 7, "*-"), "Ü 😀 z*")),
    *_cases("OVERLAY", (("abcdef", "XY", 2), "aXYdef"), (("abcdef", "XY", 2, 1), "aXYcdef")),
    *_cases("OVERLAY", (("abcdef", "XY", 0), "abcdef"), (("abcdef", "XY", 6, 5), "abcdeXY")),
    *_cases("OVERLAY", (("abcdef", "XY", 7), "abcdef"), (("abcdef", "XY", 2, -1), "aXY")),
    *_cases("OVERLAY", (("abcdef", "XY", 2, 0), "aXY"), (("abcdef", "", 2), "a")),
    *_cases("OVERLAY", (("abcdef", "XY", 5, 0), "abcdXY"), (("a😀bc", "X", 4), "a😀Xc")),
]
REPLACING = [
    *_cases(
        "REPLACE", (("hello", "", "x"), "xhxexlxlxox"), (("", "", "x"), "x"), (("hello", "l", ""), "heo")
    ),
    *_cases("REPLACE", (("😀", "", "x"), "x😀x"), ((None, "", "x"), None), (("a", None, "x"), None)),
    *_cases("TRANSLATE", (("hello", "elo", "i"), "hi"), (("hello", "ll", "xy"), "hexxo")),
    *_cases("TRANSLATE", (("hello", "l", None), "heo"), (("hello", None, "x"), "hello")),
]
SEARCHING = [
    *_cases("POSITION", (("b", "a😀b"), 3), (("", "abc"), 1), (("z", ""), 0)),
    *_cases("LOCATE", (("b", "abcb", 3), 4), (("b", "abcb", -1), 2), (("", "abc", 9), 1)),
    *_cases(
        "INSTR",
        (("abcb", "b"), 2),
        (("abcb", "b", -1), 4),
        (("abcb", "b", 1, 2), 4),
        (("abcb", "b", -1, 2), 2),
    ),
    *_cases("INSTR", (("abcabcabc", "abc", -3), 4), (("aaaa", "aa", 1, 3), 3), (("abc", "b", 0), 0)),
    *_cases("INSTR", (("abc", "", 1, 2), 1), (("abc", "", -1), 4), (("abcb", "b", 1, 3), 0)),
    *_cases("STARTSWITH", (("abc", "ab"), True), ((b"\x01\x02", b"\x02"), False)),
    *_cases("ENDSWITH", (("abc", ""), True), ((b"\x01\x02", b"\x02"), True)),
    *_cases(
        "IS_ALPHA",
        (("aé",), True),
        (("",), False),
        (("a\n",), False),
        ((None,), False),
        ((5,), False),
    ),
    *_cases("IS_DIGIT", (("١2",), True), (("1.",), False), ((5,), True)),
    *_cases("IS_DECIMAL", (("1e400",), True), ((" 1f",), True), (("NaN",), True), (("0x1F",), False)),
]
SPLITTING = [
    *_cases("SPLIT", (("a,b,,c", ","), ["a", "b", "", "c"]), (("", ","), []), (("😀b", ""), ["😀", "b"])),
    *_cases("SPLIT", (("a.b", "."), ["a", "b"]), ((None, ","), None), (("a", None), None)),
    *_cases("SPLIT_INDEX", (("a,b,c", ",", 1), "b"), (("a,b", ",", 5), None), (("a,b", ",", -1), None)),
    *_cases(
        "SPLIT_INDEX",
        (("a,b", 44, 1), "b"),
        (("", ",", 0), None),
        (("a b  c", "", 2), ""),
        (("a||b", "|", 2), "b"),
    ),
    *_cases("SPLIT_INDEX", (("a b", 0, 0), None), (("añb", 241, 1), "b")),
    *_cases("STR_TO_MAP", (("a=1=2,b,=c",), [("", "c"), ("a", "1=2"), ("b", None)]), (("",), [])),
    *_cases("STR_TO_MAP", (("x=1,y=2,x=3,",), [("x", "3"), ("y", "2")]), (("a.b", ".", "="), [])),
    *_cases("STR_TO_MAP", (("a1b2", "[0-9]", "x"), [("a", None), ("b", None)]), ((None,), None)),
]


@pytest.mark.parametrize("literal", [True, False], ids=["literals", "columns"])
@pytest.mark.parametrize("cases", [BUILDING, CUTTING, REPLACING, SEARCHING, SPLITTING])
def test_values(spark: SparkSession, cases: list[Case], literal: bool) -> None:
    check(spark, cases, literal=literal)


def test_trim_takes_its_side_from_the_mode(spark: SparkSession) -> None:
    sides = {"LEADING": "ayx", "TRAILING": "xya", "BOTH": "a"}
    check(spark, [Case("TRIM", ("xyayx", "xy"), value, {"MODE": mode}) for mode, value in sides.items()])


def test_nested_calls_do_not_capture_each_others_lambdas(spark: SparkSession) -> None:
    inner = Typed(spark_text(Case("INITCAP", ("a b",), None), literal=False), t.STRING)
    outer = Typed(spark_text(Case("REPLACE", (inner, "", inner), None), literal=False), t.STRING)
    check(spark, [Case("INITCAP", (outer,), "A Baa B A Bba B")])


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("LPAD", ("a", 2147483647, "b")),
        ("RPAD", ("a", 33554433, "b")),
        ("REPEAT", ("ab", 16777217)),
        ("REPEAT", ("abc", 2147483647)),
    ],
)
@pytest.mark.parametrize("literal", [True, False])
def test_a_text_that_would_end_spark_is_an_error(
    spark: SparkSession, name: str, args: tuple[object, ...], literal: bool
) -> None:
    text = spark_text(Case(name, args, None), literal=literal)
    with pytest.raises(Exception, match="a text of more than 33554432 characters"):
        spark.sql(f"SELECT {text} FROM VALUES (1) AS one(x)").collect()


def test_a_format_that_would_end_spark_is_an_error(spark: SparkSession) -> None:
    case = Case("PRINTF", ("%5d %-2000000000d", 1, 2), None)
    with pytest.raises(NotSupportedError, match="width of more than seven digits"):
        spark_text(case, literal=True)
    with pytest.raises(Exception, match="a width of more than seven digits"):
        spark.sql(f"SELECT {spark_text(case, literal=False)} FROM VALUES (1) AS one(x)").collect()
    check(spark, [Case("PRINTF", ("12345678 %3d", 7), "12345678   7")])


@pytest.mark.parametrize(
    ("name", "args", "result"),
    [
        ("||", ("a", "bc"), "CHAR(3) NOT NULL"),
        ("||", ("a", None), "STRING"),
        ("UPPER", ("abc",), "CHAR(3) NOT NULL"),
        ("BTRIM", (" a",), "STRING NOT NULL"),
        ("LTRIM", (" a",), "VARCHAR(2) NOT NULL"),
        ("SUBSTRING", ("hello", 2), "VARCHAR(5)"),
        ("OVERLAY", ("abc", "xy", 1), "VARCHAR(5) NOT NULL"),
        ("CONCAT_WS", (",", None), "STRING NOT NULL"),
        ("SPLIT", ("a", ","), "ARRAY<STRING> NOT NULL"),
        ("STR_TO_MAP", ("a",), "MAP<STRING, STRING>"),
        ("ELT", (1, "a", "b"), "CHAR(1)"),
        ("ELT", (1, b"a", b"b"), "BYTES"),
        ("IS_ALPHA", (None,), "BOOLEAN NOT NULL"),
    ],
)
def test_result_types(name: str, args: tuple[object, ...], result: str) -> None:
    assert str(resolve(name, args).result) == result


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("UPPER", (1,), "'UPPER(<INTEGER>)'. Supported form(s): 'UPPER(<CHARACTER>)'"),
        ("||", ("a", 1), "Cannot apply '||' to arguments of type '<CHAR(1)> || <INTEGER>'"),
        ("LPAD", ("a", 1), "Invalid number of arguments to function 'LPAD'"),
        ("IS_ALPHA", (True,), "Cannot apply 'IS_ALPHA' to arguments of type 'IS_ALPHA(<BOOLEAN>)'"),
        ("ELT", (1, 1), "Invalid input arguments"),
    ],
)  # fmt: skip
def test_refusals(name: str, args: tuple[object, ...], message: str) -> None:
    with pytest.raises(SignatureError) as error:
        resolve(name, args)
    assert message in str(error.value)
