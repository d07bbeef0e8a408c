"""Regular expressions: groups that took no part, empty matches, broken patterns; hashes; LIKE, SIMILAR TO."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.functions.evaluating import Case, Typed, check, resolve, spark_text
from tidemill.functions.api import SignatureError
from tidemill.functions.java_regex import group_count, is_broken
from tidemill.types import logical as t


def _cases(name: str, *rows: tuple[tuple[object, ...], object]) -> list[Case]:
    return [Case(name, args, expected) for args, expected in rows]


GROUPS = ("a1b2", "([a-z])([0-9])")
REGEXP = [
    *_cases(
        "REGEXP",
        (("abc", "b"), True),
        (("abc", ""), False),
        (("abc", None), None),
        (("", "a"), False),
    ),
    *_cases(
        "REGEXP_REPLACE",
        (("aab", "a", "$1"), "$1$1b"),
        (("aab", "a*", "x"), "xxbx"),
        (("abc", "", "-"), "-a-b-c-"),
    ),
    *_cases(
        "REGEXP_REPLACE",
        (("a\\b", "\\\\", "/"), "a/b"),
        (("abc", "b", "\\"), "a\\c"),
        (("", "^", ">"), ">"),
    ),
    *_cases(
        "REGEXP_EXTRACT",
        (("foothebar", "foo(.*?)(bar)", 2), "bar"),
        (("foothebar", "foo(.*?)(bar)"), "foothebar"),
    ),
    *_cases(
        "REGEXP_EXTRACT",
        (("x", "foo(.*?)", 1), None),
        (("foo", "foo(x)?", 1), None),
        (("foo", "foo(x?)", 1), ""),
    ),
    *_cases(
        "REGEXP_EXTRACT",
        (("afoo", "(a)|(b)", 2), None),
        (("foo", "foo", -1), None),
        (("", "x?"), ""),
    ),
    *_cases(
        "REGEXP_EXTRACT_ALL",
        (GROUPS, ["a", "b"]),
        ((*GROUPS, 2), ["1", "2"]),
        (("ab", "b(x)?", 1), [None]),
    ),
    *_cases(
        "REGEXP_EXTRACT_ALL",
        (("aaa", "a*", 0), ["aaa", ""]),
        (("z", "(x)", 1), []),
        ((*GROUPS, -1), None),
    ),
    *_cases(
        "REGEXP_COUNT",
        (("aaa", "aa"), 1),
        (("aaa", ""), 4),
        (("aaa", "a*"), 2),
        (("a", None), None),
    ),
    *_cases(
        "REGEXP_INSTR",
        (("hello", "l"), 3),
        (("hello", "z"), 0),
        (("😀b", "b"), 3),
        (("hello", ""), 1),
    ),
    *_cases("REGEXP_SUBSTR", (("hello", "l+"), "ll"), (("hello", "z"), None), (("hello", ""), "")),
]
LITERAL_PATTERNS = [
    *_cases("REGEXP", (("a", "["), False), ((None, "["), None)),
    *_cases("REGEXP_REPLACE", (("abc", "[", "-"), None)),
    *_cases("REGEXP_EXTRACT", (("foo", "(foo", 0), None), (("foo", "(foo)", 2), None)),
    *_cases(
        "REGEXP_EXTRACT",
        (("foo", "(foo)", Typed("1", t.INT)), "foo"),
        (("foo", "(foo)", Typed("2", t.INT)), None),
        (("foo", "(foo)", Typed("CAST(NULL AS INT)", t.INT)), None),
    ),
    *_cases("REGEXP_EXTRACT_ALL", (("a1b2", "x"), None), (("a", "("), None)),
    *_cases("REGEXP_EXTRACT_ALL", (("a1b2", "([a-z])", Typed("2", t.INT)), None)),
    *_cases("REGEXP_COUNT", (("a", "("), None)),
]
SIMILAR = [
    *_cases(
        "SIMILAR TO",
        (("abc", "a%"), True),
        (("abc", "(a|b)+c"), True),
        (("abc", "a.c"), True),
        (("a^b", "a^b"), False),
        (("123", "[[:DIGIT:]]+"), True),
    ),
    *_cases(
        "SIMILAR TO",
        (("aaa", "a{2}"), False),
        (("a+", "a\\+"), False),
        (("a\\\\", "a\\+"), True),
        (("\\", "[\\]"), True),
        (("a1", "[[:ALPHA:]][^[:ALPHA:]]"), True),
        (("a\nb", "a%b"), True),
    ),
    *_cases(
        "SIMILAR TO",
        (("a$", "a$"), True),
        (("ab\n", "ab"), False),
        (("", "%"), True),
        (("a", None), None),
        (("😀b", "_b"), True),
    ),
    *_cases(
        "SIMILAR TO",
        (("a%c", "a\\%c", "\\"), True),
        (("abc", "a\\%c", "\\"), False),
        (("]", "[a!]]", "!"), True),
        (("!", "[a!!]+", "!"), True),
        (("b!", "[a!!b]+", "!"), True),
        (("a.b", "a.b", "!"), True),
        (("(b)", "!(b!)", "!"), True),
    ),
]
LIKE = [
    *_cases(
        "LIKE",
        (("a%c", "a!%c", "!"), True),
        (("abc", "a!%c", "!"), False),
        (("a!b", "a!!b", "!"), True),
        (("a.c", "a.c", "!"), True),
        (("abc", "a.c", "!"), False),
        (("(a)\n", "(_)%", "!"), True),
        (("x\\y", "x\\y", "!"), True),
    ),
    *_cases(
        "LIKE",
        (("abc", "a%"), True),
        (("a%c", "a\\%c"), False),
        (("a\\c", "a\\c"), True),
        (("a😀c", "a_c"), True),
    ),
    *_cases("LIKE", (("abc", "A%"), False), (("abc", None), None), (("", ""), True)),
]
HASHES = [
    *_cases(
        "MD5",
        (("abc",), "900150983cd24fb0d6963f7d28e17f72"),
        ((b"\x01",), "55a54008ad1ba589aa210d2629c1df41"),
    ),
    *_cases("SHA1", (("abc",), "a9993e364706816aba3e25717850c26c9cd0d89d"), ((None,), None)),
    *_cases("SHA224", (("abc",), "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7")),
    *_cases(
        "SHA2",
        (("abc", 224), "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"),
        (("abc", Typed("CAST(NULL AS INT)", t.INT)), None),
    ),
]


@pytest.mark.parametrize("literal", [True, False], ids=["literals", "columns"])
@pytest.mark.parametrize("cases", [REGEXP, LIKE, SIMILAR, HASHES])
def test_values(spark: SparkSession, cases: list[Case], literal: bool) -> None:
    check(spark, cases, literal=literal)


def test_literal_patterns(spark: SparkSession) -> None:
    check(spark, LITERAL_PATTERNS)


@pytest.mark.parametrize(
    ("pattern", "groups", "broken"),
    [
        ("(a)(?:b)(?<n>c)(?=d)(?<!e)", 2, False),
        ("[(](\\()", 1, False),
        ("[]a(]", 0, False),
        ("\\Q(\\E(x)", 1, False),
        ("[a-z&&[^b]](x)", 1, False),
        ("(", 1, True),
        ("a)", 0, True),
        ("*a", 0, True),
        ("a\\", 0, True),
        ("[a", 0, True),
        ("a{2,1}", 0, True),
        ("a{,3}", 0, True),
        ("a{2", 0, True),
        ("{x}", 0, True),
        ("{2}a{2}?b{2,}+c{1,3}", 0, False),
        (r"\p{Alpha}\x{41}\b{g}\{[{]", 0, False),
        ("a**", 0, True),
        ("a*+b*?", 0, False),
        ("(?P<n>a)", 0, True),
        ("(?<!a)(?i)(?>b)(?-i:c)", 0, False),
        (r"\y", 0, True),
    ],
)
def test_reading_of_patterns(pattern: str, groups: int, broken: bool) -> None:
    assert group_count(pattern) == groups
    assert is_broken(pattern) == broken


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("LIKE", ("ab", "a!b", "!"), "Invalid escape sequence 'a!b', 1"),
        ("LIKE", ("ab", "ab", "!!"), "Invalid escape character '!!'"),
        ("LIKE", (5, "5"), "LIKE(<INTEGER>, <CHAR(1)>)"),
        ("SIMILAR TO", ("ab", "[a"), "Invalid regular expression '[a'"),
        ("MD5", (1,), "'MD5(<INTEGER>)'. Supported form(s): 'MD5(<STRING>)'"),
    ],
)
def test_refusals(name: str, args: tuple[object, ...], message: str) -> None:
    with pytest.raises(SignatureError) as error:
        resolve(name, args)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("name", "pattern", "message"),
    [
        ("SIMILAR TO", ("a]", "!"), "Invalid regular expression 'a]'"),
        ("SIMILAR TO", ("[a", "!"), r"Invalid regular expression '\[a'"),
        ("SIMILAR TO", ("[a!]", "!"), r"Invalid regular expression '\[a!\]'"),
        ("SIMILAR TO", ("[a*]", "!"), r"Invalid regular expression '\[a\*\]'"),
        ("SIMILAR TO", ("a!b", "!"), "Invalid escape sequence 'a!b'"),
        ("LIKE", ("a!b", "!"), "Invalid escape sequence 'a!b'"),
        ("LIKE", ("a!", "!"), "Invalid escape sequence 'a!'"),
        ("LIKE", ("a", "!!"), "Invalid escape character '!!'"),
    ],
)
def test_a_wrong_pattern_fails_with_its_row(
    spark: SparkSession, name: str, pattern: tuple[str, str], message: str
) -> None:
    call = Case(name, ("a", *(Typed(f"'{text}'", t.STRING) for text in pattern)), None)
    with pytest.raises(Exception, match=message):
        spark.sql(f"SELECT {spark_text(call, literal=True)}").collect()
