"""Encodings, URLs, addresses, PRINTF, TYPEOF."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.functions.evaluating import Case, Typed, check, resolve, spark_text
from tidemill.errors import NotSupportedError
from tidemill.functions.api import SignatureError
from tidemill.types import logical as t


def _cases(name: str, *rows: tuple[tuple[object, ...], object]) -> list[Case]:
    return [Case(name, args, expected) for args, expected in rows]


URL = "http://user:pw@host.com:80/path/p.php?query=1&b=2#Ref"
ENCODING = [
    *_cases("HEX", ((255,), "FF"), (("aß",), "61C39F"), ((-1,), "FFFFFFFFFFFFFFFF"), (("",), "")),
    *_cases(
        "UNHEX",
        (("4a",), b"J"),
        (("4A4",), b"\x00\xa4"),
        (("zz",), None),
        (("zAB",), None),
        (("",), b""),
    ),
    *_cases("TO_BASE64", (("hello",), "aGVsbG8="), ((b"\x01\x02",), "AQI=")),
    *_cases("FROM_BASE64", (("aGVsbG8",), "hello"), (("/w==",), "\ufffd"), (("",), "")),
    *_cases(
        "ENCODE",
        (("é", "ISO-8859-1"), b"\xe9"),
        (("a", "utf-16le"), b"a\x00"),
        (("a", "UTF-16"), b"\xfe\xff\x00a"),
    ),
    *_cases("DECODE", ((b"\xe9", "ISO-8859-1"), "é"), ((b"\xfe\xff\x00a", "UTF-16"), "a")),
    *_cases("URL_ENCODE", (("a b&ü*~-._",), "a+b%26%C3%BC*%7E-._")),
    *_cases("URL_DECODE", (("a+b%20c",), "a b c"), (("%4",), None), (("%41%zz",), None)),
    *_cases(
        "INET_ATON",
        (("127.0.0.1",), 2130706433),
        (("1.2",), 16777218),
        (("1.2.3",), 16908291),
        (("1.256",), None),
    ),
    *_cases("INET_NTOA", ((2130706433,), "127.0.0.1"), ((-1,), None), ((5,), "0.0.0.5")),
]
LITERAL_CHARSETS = [
    *_cases("ENCODE", (("é", "US-ASCII"), b"?")),
    *_cases("DECODE", ((b"\xff", "UTF-8"), "\ufffd")),
]
URLS = [
    *_cases(
        "PARSE_URL",
        ((URL, "HOST"), "host.com"),
        ((URL, "PATH"), "/path/p.php"),
        ((URL, "REF"), "Ref"),
    ),
    *_cases(
        "PARSE_URL",
        ((URL, "QUERY"), "query=1&b=2"),
        ((URL, "QUERY", "b"), "2"),
        ((URL, "QUERY", "c"), None),
    ),
    *_cases(
        "PARSE_URL",
        ((URL, "FILE"), "/path/p.php?query=1&b=2"),
        ((URL, "AUTHORITY"), "user:pw@host.com:80"),
    ),
    *_cases(
        "PARSE_URL",
        ((URL, "USERINFO"), "user:pw"),
        ((URL, "PROTOCOL"), "http"),
        ((URL, "host"), None),
    ),
    *_cases(
        "PARSE_URL",
        (("http://h", "PATH"), ""),
        (("http://h", "QUERY"), None),
        (("nonsense", "HOST"), None),
    ),
    *_cases("PARSE_URL", (("foo://h/x", "PROTOCOL"), None), (("http://h/a b?c d", "PATH"), "/a b")),
    *_cases(
        "PARSE_URL",
        (("http://h/p?a=1", "HOST", "a"), None),
        (("http://h/p?aa=1&a=2", "QUERY", "a"), "2"),
    ),
    *_cases(
        "PARSE_URL",
        (("\t http://h/p q?a=1 \n", "QUERY"), "a=1"),
        (("http://h/p?k=v  ", "QUERY", "k"), "v"),
        ((" http://h/p?k=v#r ", "FILE"), "/p?k=v"),
    ),
]
PRINTF = [
    *_cases(
        "PRINTF",
        (("%d %s", 1, "x"), "1 x"),
        (("%5.2f", 1.5), " 1.50"),
        (("%2$s %1$s", "a", "b"), "b a"),
    ),
    *_cases(
        "PRINTF",
        (("%s/%04d", "p", None), "p/null"),
        (("%s", Decimal("1.250")), "1.250"),
        (("%,d", 1234567), "1,234,567"),
    ),
    *_cases("PRINTF", (("%%",), "%"), ((None,), None), (("%s", True), "true"), (("%s", 1e10), "1.0E10")),
]
MISFITS = [
    *_cases(
        "PRINTF",
        (("%d", "x"), None),
        (("%s %s", "a"), None),
        (("%.2f", Decimal("1.25")), None),
        (("%q", 1), None),
    ),
    *_cases("PRINTF", (("%c", "a"), None), (("%d", None), "null"), (("%-s", "a"), None)),
]
ROWTIME = t.TimestampType(precision=3, rowtime=True, nullable=False)
TYPES = [
    *_cases(
        "TYPEOF",
        ((1,), "INT NOT NULL"),
        (("x",), "CHAR(1) NOT NULL"),
        ((Typed("NULL", t.NullType()),), "NULL"),
        ((Typed("TIMESTAMP '2024-01-01 00:00:00'", ROWTIME),), "TIMESTAMP(3) NOT NULL"),
    ),
]


@pytest.mark.parametrize("literal", [True, False], ids=["literals", "columns"])
@pytest.mark.parametrize("cases", [ENCODING, URLS, PRINTF, TYPES])
def test_values(spark: SparkSession, cases: list[Case], literal: bool) -> None:
    check(spark, cases, literal=literal)


def test_what_only_literals_tell(spark: SparkSession) -> None:
    check(spark, [*LITERAL_CHARSETS, *MISFITS])


def test_base64_must_be_base64(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="Illegal base64"):
        check(spark, _cases("FROM_BASE64", (("!!!",), None)))


def test_refusals() -> None:
    with pytest.raises(SignatureError, match="unknown character set 'nope'"):
        resolve("ENCODE", ("a", "nope"))
    with pytest.raises(SignatureError, match="HEX"):
        resolve("HEX", (b"a",))
    with pytest.raises(NotSupportedError, match="PRINTF of a TIMESTAMP"):
        spark_text(Case("PRINTF", ("%s", Typed("x", t.TimestampType())), None), literal=True)
    with pytest.raises(NotSupportedError, match="function PARSE_JSON"):
        resolve("PARSE_JSON", ("{}",))
