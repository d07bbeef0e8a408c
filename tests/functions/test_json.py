"""Reading and making JSON: paths, modes, behaviours, numbers as written, quoting.

The expected values are Flink 2.3's.
"""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.functions.evaluating import Case, Typed, check, resolve
from tidemill.errors import NotSupportedError
from tidemill.functions.api import SignatureError
from tidemill.types import logical as t

_KEY = t.VarCharType(nullable=False)
_ROW = t.RowType(fields=(t.Field("z", t.INT), t.Field("a", t.INT)))

VALUES = [
    ('{"a":1}', "$.a", "1"),
    ('{"a":1}', "$.b", None),
    ('{"a":"x"}', "$.a", "x"),
    ('{"a":null}', "$.a", None),
    ('{"a":[1]}', "$.a", None),
    ('{"a":1.50}', "$.a", "1.50"),
    ('{"a":true}', "$.a", "true"),
    ('{"a":1e3}', "$.a", "1E+3"),
    ("bad", "$.a", None),
    ("5", "$", "5"),
    ('"s"', "$", "s"),
    ('{"a":12345678901234567890}', "$.a", "12345678901234567890"),
    ('{"a":1.0}', "$.a", "1.0"),
    ('{"a":0.1E-7}', "$.a", "1E-8"),
    ('{"a":1}', "lax $.b", None),
    ('{"a":{"b":[1,{"c":"z"}]}}', "$.a.b[1].c", "z"),
    ('{"a":[10,20]}', "$.a[5]", None),
    ('{"a b":1}', '$.["a b"]', "1"),
    ('{"a b":1}', "$['a b']", "1"),
    ('{"a":[1]}', "$.a[*]", None),
    ('{"a":[10,20]}', "$.a[-1]", "20"),
    ('{"a":1}', "a", "1"),
    ('{"a":1}', "LAX $.a", "1"),
    (None, "$.a", None),
    ("", "$", None),
    (' {"a":1} ', "$.a", "1"),
    ('{"a":1}x', "$.a", "1"),
    ("{a:1}", "$.a", None),
    ('{"a":1,"a":2}', "$.a", "2"),
    ('{"a":NaN}', "$.a", None),
    ("[1,]", "$[0]", None),
    ("nul", "$", None),
    ("null", "$", None),
    ('{"a":01}', "$.a", None),
    ('{"a":"\\u00e9\\n\\"q"}', "$.a", 'é\n"q'),
    ('{"a":1.5,"b":"x 1.5 \\" 7.5"}', "$.b", 'x 1.5 " 7.5'),
    ('{"a.b":1}', "$.a.b", None),
    ('{"a-b":1}', "$.a-b", "1"),
    ('{"é":1}', "$.é", "1"),
    ('{"$a":1}', "$.$a", "1"),
    ('{"A":1}', "$.a", None),
    ('{"a":{"b":2}}', '$["a"].b', "2"),
    ('{"a":[1]}', "$.a[ 0 ]", "1"),
    ("[[7]]", "$[0][0]", "7"),
    ('{"a":"x"}', "$.a.b", None),
    ('{"a":"{\\"b\\":1}"}', "$.a.b", None),
    ('{"a":{"b":1}}', "$.a[0]", None),
    ('{"a":"1e3"}', "$.a", "1e3"),
    ('{"a":[[1.5],[2.5]]}', "$.a[-1][0]", "2.5"),
]

VALUES_WITH_OPTIONS = [
    Case("JSON_VALUE", ('{"a":1}', "lax $.b", "d"), "d", {"ON EMPTY": "DEFAULT"}),
    Case("JSON_VALUE", ('{"a":1}', "$.b", "e", "r"), "r", {"ON EMPTY": "DEFAULT", "ON ERROR": "DEFAULT"}),
    Case(
        "JSON_VALUE", ('{"a":[1]}', "lax $.a", "e", "r"), "e", {"ON EMPTY": "DEFAULT", "ON ERROR": "DEFAULT"}
    ),
    Case("JSON_VALUE", ("bad", "lax $.a", "e", "r"), "e", {"ON EMPTY": "DEFAULT", "ON ERROR": "DEFAULT"}),
    Case("JSON_VALUE", ('{"a":1}', "$.a"), 1, {"RETURNING": "INT"}),
    Case("JSON_VALUE", ('{"a":1.5}', "$.a"), 1.5, {"RETURNING": "DOUBLE"}),
    Case("JSON_VALUE", ('{"a":true}', "$.a"), True, {"RETURNING": "BOOLEAN"}),
    Case("JSON_VALUE", ('{"a":"x"}', "$.a"), None, {"RETURNING": "INT"}),
    Case("JSON_VALUE", ('{"a":1e2}', "$.a"), 100.0, {"RETURNING": "DOUBLE"}),
    Case("JSON_VALUE", ('{"a":99999999999}', "$.a"), None, {"RETURNING": "INT"}),
    Case("JSON_VALUE", ('{"a":123}', "$.a"), "12", {"RETURNING": "VARCHAR(2)"}),
    Case("JSON_VALUE", ('{"a":1}', "strict $.b", 5), 5, {"RETURNING": "INT", "ON ERROR": "DEFAULT"}),
]

EXISTS = [
    ('{"a":null}', "$.a", False),
    ('{"a":1}', "$.b", False),
    ("bad", "$.a", False),
    ('{"a":[]}', "$.a[*]", True),
    ('{"a":1}', "lax $.b", False),
    (None, "$.a", None),
    ("[]", "$", True),
    ("null", "$", False),
    ('{"a":[{"b":1}]}', "$.a[*].zz", True),
    ('{"a":5}', "$.z[*]", False),
    ('{"a":5}', "$.a[*]", True),
]

EXISTS_WITH_OPTIONS = [
    Case("JSON_EXISTS", ("bad", "$.a"), True, {"ON ERROR": "TRUE"}),
    Case("JSON_EXISTS", ("bad", "lax $.a"), False, {"ON ERROR": "UNKNOWN"}),
    Case("JSON_EXISTS", ('{"a":1}', "$.b"), None, {"ON ERROR": "UNKNOWN"}),
]

QUERIES = [
    ('{"a":[1,2]}', "$.a", "[1,2]"),
    ('{"a":{"b":1}}', "$.a", '{"b":1}'),
    ('{"a":1}', "$.a", None),
    ('{"a":"s"}', "$.a", None),
    ('{"a":null}', "$.a", None),
    ('{"a":1}', "$.b", None),
    ("bad", "$.a", None),
    ('{ "a" : [ 1 , 2.50, 1e2, "x\\u00e9\\/" ] }', "$", '{"a":[1,2.50,1E+2,"xé/"]}'),
    ('{"b":1,"a":2}', "$", '{"a":2,"b":1}'),
    ('{"a":1,"a":2}', "$", '{"a":2}'),
    ('{"a":[1,2]}', "$.a[*]", "[1,2]"),
    ('{"a":5}', "$.a[*]", "[]"),
    ('{"a":5}', "$.z[*]", None),
    ('{"a":5}', "lax $.z[*]", "[]"),
    ('{"a":[{"b":1},{"c":2},{"b":null},3]}', "$.a[*].b", "[1,null]"),
    ('{"a":[[1,2],[3]]}', "$.a[*][0]", "[1,3]"),
    ('{"a":[[1,2],[3]]}', "$.a[*][*]", "[1,2,3]"),
    ('{"a":[[1,2],[3]]}', "$.a[*][5]", "[]"),
    ('{"b":[{"z":1,"y":[1.50,{"q":1,"p":2}]}]}', "$.b", '[{"y":[1.50,{"p":2,"q":1}],"z":1}]'),
    (
        "[0.0000001, 1E5, 1.0E-3, -0, -0.0, 123456789012345678901234567890, 1e400]",
        "$",
        "[1E-7,1E+5,0.0010,0,0.0,123456789012345678901234567890,1E+400]",
    ),
    ('{"a":"[1]"}', "$.a", None),
    ('{"a":-2.5e3}', "$.a", None),
]

QUERIES_WITH_OPTIONS = [
    Case("JSON_QUERY", ('{"a":1}', "$.a"), "[1]", {"WRAPPER": "UNCONDITIONAL"}),
    Case("JSON_QUERY", ('{"a":[1]}', "$.a"), "[[1]]", {"WRAPPER": "UNCONDITIONAL"}),
    Case("JSON_QUERY", ('{"a":[1]}', "$.a"), "[1]", {"WRAPPER": "CONDITIONAL"}),
    Case("JSON_QUERY", ('{"a":{"b":1}}', "$.a"), '[{"b":1}]', {"WRAPPER": "CONDITIONAL"}),
    Case("JSON_QUERY", ('{"a":"s"}', "$.a"), '["s"]', {"WRAPPER": "UNCONDITIONAL"}),
    Case("JSON_QUERY", ('{"a":null}', "$.a"), None, {"WRAPPER": "UNCONDITIONAL"}),
    Case("JSON_QUERY", ('{"a":[1,2]}', "$.a[*]"), "[[1,2]]", {"WRAPPER": "UNCONDITIONAL"}),
    Case("JSON_QUERY", ('{"a":[1,2]}', "$.a[*]"), "[1,2]", {"WRAPPER": "CONDITIONAL"}),
    Case("JSON_QUERY", ('{"a":[]}', "$.a[*]"), "[[]]", {"WRAPPER": "UNCONDITIONAL"}),
    Case("JSON_QUERY", ('{"a":1}', "$.b"), None, {"WRAPPER": "UNCONDITIONAL"}),
    Case("JSON_QUERY", ('{"a":-2.5e3}', "$.a"), "[-2.5E+3]", {"WRAPPER": "UNCONDITIONAL"}),
    Case("JSON_QUERY", ('{"a":1}', "$.a"), "[1]", {"WRAPPER": "CONDITIONAL"}),
    Case("JSON_QUERY", ('{"a":1}', "$.b"), "[]", {"ON ERROR": "EMPTY ARRAY"}),
    Case("JSON_QUERY", ('{"a":1}', "lax $.a"), None, {"ON ERROR": "EMPTY OBJECT"}),
    Case(
        "JSON_QUERY", ('{"a":null}', "lax $.a"), "[]", {"ON EMPTY": "EMPTY ARRAY", "ON ERROR": "EMPTY OBJECT"}
    ),
    Case(
        "JSON_QUERY",
        ('{"a":["x",1,null,[2],{"b":3},true,1.50]}', "$.a"),
        ["x", "1", None, "[2]", '{"b":3}', "true", "1.50"],
        {"RETURNING": "ARRAY<STRING>"},
    ),
    Case("JSON_QUERY", ('{"a":{"b":1}}', "$.a"), None, {"RETURNING": "ARRAY<STRING>"}),
    Case("JSON_QUERY", ('{"a":1}', "lax $.b"), [], {"RETURNING": "ARRAY<STRING>", "ON EMPTY": "EMPTY ARRAY"}),
    Case("JSON_QUERY", ('{"a":[]}', "$.a"), [], {"RETURNING": "ARRAY<STRING>"}),
    Case("JSON_QUERY", ('{"a":1}', "$.a"), ["1"], {"RETURNING": "ARRAY<STRING>", "WRAPPER": "UNCONDITIONAL"}),
]

IS_JSON = [
    Case("IS JSON VALUE", ("1",), True),
    Case("IS JSON VALUE", ("x",), False),
    Case("IS JSON VALUE", ("",), False),
    Case("IS JSON VALUE", ("{}x",), True),
    Case("IS JSON VALUE", ("{} {}",), True),
    Case("IS JSON VALUE", ("[1,]",), False),
    Case("IS JSON VALUE", ('{"a":1,"a":2}',), True),
    Case("IS JSON VALUE", ("NaN",), False),
    Case("IS JSON VALUE", ("01",), False),
    Case("IS JSON VALUE", ("-",), False),
    Case("IS JSON VALUE", ("1.",), False),
    Case("IS JSON VALUE", (".5",), False),
    Case("IS JSON VALUE", ('"a',), False),
    Case("IS JSON VALUE", ("{a:1}",), False),
    Case("IS JSON VALUE", ("TRUE",), False),
    Case("IS JSON VALUE", ("1 2",), True),
    Case("IS JSON VALUE", ("// c",), False),
    Case("IS JSON VALUE", ("  ",), False),
    Case("IS JSON VALUE", (None,), False),
    Case("IS JSON OBJECT", ("{}",), True),
    Case("IS JSON ARRAY", ("{}",), False),
    Case("IS JSON SCALAR", ("{}",), False),
    Case("IS JSON OBJECT", ("[]",), False),
    Case("IS JSON ARRAY", ("[]",), True),
    Case("IS JSON SCALAR", ("[]",), False),
    Case("IS JSON OBJECT", (" [] ",), False),
    Case("IS JSON ARRAY", (" [] ",), True),
    Case("IS JSON SCALAR", (" [] ",), False),
    Case("IS JSON OBJECT", ("null",), False),
    Case("IS JSON ARRAY", ("null",), False),
    Case("IS JSON SCALAR", ("null",), True),
    Case("IS JSON OBJECT", ('"x"',), False),
    Case("IS JSON ARRAY", ('"x"',), False),
    Case("IS JSON SCALAR", ('"x"',), True),
    Case("IS JSON OBJECT", ("x",), False),
    Case("IS JSON ARRAY", ("x",), False),
    Case("IS JSON SCALAR", ("x",), False),
    Case("IS JSON OBJECT", (None,), False),
    Case("IS JSON ARRAY", (None,), False),
    Case("IS JSON SCALAR", (None,), False),
]

CONSTRUCTORS = [
    Case("JSON_OBJECT", ("é", 1, "z", 2, "Z", 3, "a", 4), '{"Z":3,"a":4,"z":2,"é":1}'),
    Case("JSON_OBJECT", (Typed("'z'", _KEY), 1, "a", 2), '{"a":2,"z":1}'),
    Case("JSON_STRING", (Typed("named_struct('z', 1, 'a', 2)", _ROW),), '{"a":2,"z":1}'),
    Case("JSON_OBJECT", (), "{}"),
    Case("JSON_OBJECT", ("a", 1), '{"a":1}'),
    Case("JSON_OBJECT", ("a", Typed("CAST(NULL AS INT)", t.INT)), '{"a":null}'),
    Case("JSON_OBJECT", ("a", Typed("CAST(NULL AS INT)", t.INT)), "{}", {"NULLS": "ABSENT ON NULL"}),
    Case("JSON_OBJECT", ("a", 1, "a", 2), '{"a":2}'),
    Case("JSON_OBJECT", ("a", Typed("'{\"b\":1}'", t.STRING)), '{"a":{"b":1}}', {"RAW": "1"}),
    Case("JSON_OBJECT", ("a", '{"x":1}'), '{"a":"{\\"x\\":1}"}'),
    Case("JSON_OBJECT", ("k", Decimal("1.50")), '{"k":1.50}'),
    Case("JSON_OBJECT", ("k", 10000000000.0), '{"k":1.0E+10}'),
    Case("JSON_OBJECT", ("k", Typed("CAST(1.5 AS FLOAT)", t.FloatType())), '{"k":1.5}'),
    Case("JSON_OBJECT", ("k", True), '{"k":true}'),
    Case(
        "JSON_OBJECT",
        ("k", Typed("CAST(0.0000001 AS DECIMAL(10,7))", t.DecimalType(precision=10, scale=7))),
        '{"k":1E-7}',
    ),
    Case("JSON_OBJECT", ("k", Typed("CAST('NaN' AS DOUBLE)", t.DOUBLE)), '{"k":"NaN"}'),
    Case("JSON_OBJECT", ("k", 1e-07), '{"k":1.0E-7}'),
    Case("JSON_OBJECT", ("k", 0.0001), '{"k":0.00010}'),
    Case(
        "JSON_OBJECT",
        ("k", Typed("TIMESTAMP_NTZ '2020-01-01 00:00:00'", t.TimestampType())),
        '{"k":"2020-01-01T00:00:00"}',
    ),
    Case(
        "JSON_OBJECT",
        ("k", Typed("TIMESTAMP_NTZ '2020-01-01 10:11:12.12'", t.TimestampType())),
        '{"k":"2020-01-01T10:11:12.12"}',
    ),
    Case(
        "JSON_OBJECT",
        ("k", Typed("TIMESTAMP '1970-01-01 00:00:00'", t.LocalZonedTimestampType())),
        '{"k":"1970-01-01T00:00:00Z"}',
    ),
    Case("JSON_OBJECT", ("k", b"\x01\x02"), '{"k":"AQI="}'),
    Case("JSON_OBJECT", ("k", Typed("array(1,NULL)", t.ArrayType(element=t.INT))), '{"k":[1,null]}'),
    Case(
        "JSON_OBJECT",
        ("k", Typed("array(named_struct('key','a','value',1))", t.MapType(key=t.STRING, value=t.INT))),
        '{"k":{"a":1}}',
    ),
    Case(
        "JSON_OBJECT",
        (
            "k",
            Typed(
                "named_struct('EXPR$0',1,'EXPR$1','x')",
                t.RowType(fields=(t.Field("EXPR$0", t.INT), t.Field("EXPR$1", t.STRING))),
            ),
        ),
        '{"k":{"EXPR$0":1,"EXPR$1":"x"}}',
    ),
    Case("JSON_OBJECT", ('a"b', 2), '{"a\\"b":2}'),
    Case("JSON_OBJECT", ("", 2), '{"":2}'),
    Case("JSON_ARRAY", (), "[]"),
    Case("JSON_ARRAY", (1, Typed("CAST(NULL AS INT)", t.INT), "x"), '[1,"x"]'),
    Case(
        "JSON_ARRAY", (1, Typed("CAST(NULL AS INT)", t.INT), "x"), '[1,null,"x"]', {"NULLS": "NULL ON NULL"}
    ),
    Case("JSON_STRING", (1,), "1"),
    Case("JSON_STRING", ("a",), '"a"'),
    Case("JSON_STRING", (None,), None),
    Case("JSON_STRING", ('\x01\x1f\x7f\u2028é😀"\\/',), '"\\u0001\\u001F\x7f\u2028é😀\\"\\\\/"'),
]
QUOTING = [
    Case("JSON_QUOTE", ('a"b\\c/d',), '"a\\"b\\\\c\\/d"'),
    Case("JSON_QUOTE", ("é😀",), '"\\u00e9\\ud83d\\ude00"'),
    Case("JSON_QUOTE", ("\x01\n\t",), '"\x01\\n\\t"'),
    Case("JSON_QUOTE", (None,), None),
    Case("JSON_QUOTE", ("",), '""'),
    Case("JSON_UNQUOTE", ('"abc"',), "abc"),
    Case("JSON_UNQUOTE", ("abc",), "abc"),
    Case("JSON_UNQUOTE", ('"a\\u00e9"',), "aé"),
    Case("JSON_UNQUOTE", ('"a',), '"a'),
    Case("JSON_UNQUOTE", ("[1,2]",), "[1,2]"),
    Case("JSON_UNQUOTE", ('"a\\x"',), '"a\\x"'),
    Case("JSON_UNQUOTE", ("",), ""),
    Case("JSON_UNQUOTE", ('"',), '"'),
    Case("JSON_UNQUOTE", ('""',), ""),
    Case("JSON_UNQUOTE", (None,), None),
    Case("JSON_UNQUOTE", (' "a" ',), ' "a" '),
    Case("JSON_UNQUOTE", ('"a"b"',), 'a"b'),
    Case("JSON_UNQUOTE", ('"\\ud83d\\ude00"',), "😀"),
    Case("JSON_UNQUOTE", ('"a\\/b\\n"',), "a/b\n"),
    Case("JSON_UNQUOTE", ('"\\u00"',), '"\\u00"'),
    Case("JSON_UNQUOTE", ('"a\tb"',), "a\tb"),
    Case("JSON", ('{"b": 1.50, "a" : 2}',), '{"a":2,"b":1.50}'),
    Case("JSON", (None,), None),
]


@pytest.mark.parametrize(
    ("name", "rows"), [("JSON_VALUE", VALUES), ("JSON_EXISTS", EXISTS), ("JSON_QUERY", QUERIES)]
)
def test_paths(spark: SparkSession, name: str, rows: list[tuple[object, object, object]]) -> None:
    check(spark, [Case(name, (document, path), expected) for document, path, expected in rows])


@pytest.mark.parametrize(
    "cases", [VALUES_WITH_OPTIONS, EXISTS_WITH_OPTIONS, QUERIES_WITH_OPTIONS, IS_JSON, CONSTRUCTORS, QUOTING]
)
def test_values(spark: SparkSession, cases: list[Case]) -> None:
    check(spark, cases)


def test_errors_on_error(spark: SparkSession) -> None:
    strict = [Case("JSON_VALUE", ('{"a":1}', "$.b"), None, {"ON ERROR": "ERROR"})]
    with pytest.raises(PySparkException, match="No results for path"):
        check(spark, strict)
    lax = [Case("JSON_QUERY", ('{"a":1}', "lax $.b"), None, {"ON EMPTY": "ERROR"})]
    with pytest.raises(PySparkException, match="Empty result of JSON_QUERY function is not allowed"):
        check(spark, lax)
    with pytest.raises(PySparkException, match="Not JSON: bad"):
        check(spark, [Case("JSON", ("bad",), None)])


@pytest.mark.parametrize("path", ["$..a", "$.a[0:2]", "$.a[?(@>1)]", "$.a[0,1]", "$.a.size()", "$[", "$."])
def test_paths_that_are_refused_are_named(path: str) -> None:
    with pytest.raises(NotSupportedError) as error:
        resolve("JSON_VALUE", ("{}", path))
    assert path in str(error.value)


@pytest.mark.parametrize(
    ("name", "args", "options", "message"),
    [
        ("JSON_VALUE", ("{}", "$"), {"RETURNING": "BIGINT"}, "Unsupported type 'BIGINT' for RETURNING"),
        ("JSON_VALUE", ("{}", "$", "x"), {"RETURNING": "INT"}, "DEFAULT"),
        ("JSON_QUERY", ("{}", "$"), {"RETURNING": "ARRAY<INT>"}, "Unsupported array element type 'INT'"),
        (
            "JSON_QUERY",
            ("{}", "$"),
            {"RETURNING": "ARRAY<STRING>", "ON ERROR": "EMPTY OBJECT"},
            "Illegal on error behavior 'EMPTY OBJECT'",
        ),
        ("JSON_OBJECT", (1, 2), {}, "Expected a character type"),
        (
            "JSON_STRING",
            (Typed("x", t.DATE),),
            {},
            "Type 'DATE' is not scalar or cannot be converted into JSON.",
        ),
        ("IS JSON VALUE", (5,), {}, "IS JSON VALUE"),
    ],
)
def test_refusals(name: str, args: tuple[object, ...], options: dict[str, str], message: str) -> None:
    with pytest.raises(SignatureError) as error:
        resolve(name, args, options)
    assert message in str(error.value)
