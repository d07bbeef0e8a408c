from __future__ import annotations

import pytest

from tests.sql.shape import expression
from tidemill.errors import SqlSyntaxError, ValidationError
from tidemill.sql.expressions import JsonQuery, JsonValue, TypeSpec
from tidemill.sql.parser import parse_expression
from tidemill.types.logical import INT


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("coalesce(a, 1)", "(coalesce a 1)"),
        ("LOG(2, a)", "(LOG 2 a)"),
        ("IF(a, b, c)", "(IF a b c)"),
        ("LEFT(a, 1)", "(LEFT a 1)"),
        ("`my f`(a)", "(my f a)"),
        ("a.b.f(x)", "(a.b.f x)"),
        ("CURRENT_DATE", "(CURRENT_DATE)"),
        ("current_timestamp", "(current_timestamp)"),
        ("NOW()", "(NOW)"),
        ("COUNT(*)", "(COUNT Star)"),
        ("COUNT(DISTINCT a, b)", "(COUNT (Distinct a b))"),
        ("SUM(ALL a)", "(SUM a)"),
        ("SUM(a) FILTER (WHERE b > 0)", "(Filter (SUM a) (Where (GT b 0)))"),
        ("LISTAGG(a, ',') WITHIN GROUP (ORDER BY b)", "(WithinGroup (LISTAGG a ',') (Order (Ordered b)))"),
        ("ARRAY_AGG(a RESPECT NULLS)", "(ARRAY_AGG (RespectNulls a))"),
        ("ARRAY_AGG(a ORDER BY b DESC)", "(ARRAY_AGG (Order (Ordered b True) a))"),
        ("f(x => 1, y => DEFAULT)", "(f (Kwarg x 1) (Kwarg y DEFAULT))"),
        ("CASE a WHEN 1, 2 THEN b ELSE c END", "(Case a (If 1 b) (If 2 b) c)"),
        ("CASE WHEN a THEN b END", "(Case (If a b))"),
        ("ARRAY[1, 2][1]", "(Bracket (Array 1 2) 1)"),
        ("MAP['k', 1]", "(Map (Array 'k') (Array 1))"),
        ("ROW(1, a)", "(Tuple 1 a)"),
        ("(1, a)", "(Tuple 1 a)"),
        ("ARRAY(SELECT a)", "(ArrayQuery (Select a) ARRAY)"),
        ("EXTRACT(DAY FROM a + b)", "(Extract DAY (Add a b))"),
        ("FLOOR(a)", "(FLOOR a)"),
        ("FLOOR(a TO month)", "(Floor a MONTH)"),
        ("CEILING(a TO DAY)", "(Ceil a DAY)"),
        ("TRIM(a)", "(Trim a BOTH)"),
        ("TRIM(LEADING 'x' FROM a)", "(Trim a 'x' LEADING)"),
        ("TRIM(TRAILING FROM a)", "(Trim a TRAILING)"),
        ("POSITION('a' IN b || c)", "(POSITION 'a' (DPipe b c))"),
        ("OVERLAY(a PLACING b FROM 1 FOR 2)", "(OVERLAY a b 1 2)"),
        ("SUBSTRING(a FROM 2 FOR 3)", "(SUBSTRING a 2 3)"),
        ("SUBSTRING(a, 2)", "(SUBSTRING a 2)"),
        ("TIMESTAMPADD(SQL_TSI_DAY, 1, a)", "(TIMESTAMPADD DAY 1 a)"),
        ("timestampdiff(second, a, b)", "(timestampdiff SECOND a b)"),
        ("JSON_OBJECT('a' VALUE 1, KEY b VALUE 2, 'c': 3 ABSENT ON NULL)",
         "(JsonObject (JSONKeyValue 'a' 1) (JSONKeyValue b 2) (JSONKeyValue 'c' 3) ABSENT)"),
        ("JSON_OBJECT()", "JsonObject"),
        ("JSON_ARRAY(1, a NULL ON NULL)", "(JsonArray 1 a NULL)"),
        ("JSON_OBJECTAGG(KEY a VALUE b)", "(JsonObjectAgg (JSONKeyValue a b))"),
        ("JSON_ARRAYAGG(a ORDER BY b ABSENT ON NULL)", "(JsonArrayAgg a (Order (Ordered b)) ABSENT)"),
        ("JSON_EXISTS(a, '$.x' UNKNOWN ON ERROR)", "(JsonExists a '$.x' (JsonBehavior UNKNOWN))"),
        ("SUM(a) OVER w", "(Window (SUM a) w)"),
        (
            "LAG(a, 1) IGNORE NULLS OVER (PARTITION BY b ORDER BY c DESC NULLS LAST)",
            "(Window (IgnoreNulls (LAG a 1)) b (Order (Ordered c True)))",
        ),
        (
            "SUM(a) OVER (ORDER BY b ROWS BETWEEN 2 PRECEDING AND UNBOUNDED FOLLOWING)",
            "(Window (SUM a) (Order (Ordered b)) (WindowSpec ROWS 2 PRECEDING UNBOUNDED FOLLOWING))",
        ),
        (
            "SUM(a) OVER (w RANGE INTERVAL '1' DAY PRECEDING)",
            "(Window (SUM a) w (WindowSpec RANGE (IntervalLiteral 1 DAY) PRECEDING CURRENT ROW))",
        ),
    ],
)  # fmt: skip
def test_calls(text: str, tree: str) -> None:
    assert expression(text) == tree


def test_casts_carry_a_resolved_type() -> None:
    tree = parse_expression("TRY_CAST(a AS ROW<x INT, y STRING NOT NULL>)")
    assert type(tree).__name__ == "TryCast"
    kind = tree.args["to"]
    assert isinstance(kind, TypeSpec)
    assert str(kind.logical) == "ROW<`x` INT, `y` STRING NOT NULL>"
    assert kind.args["written"] == "ROW<x INT, y STRING NOT NULL>"


def test_json_value_behaviours() -> None:
    tree = parse_expression("JSON_VALUE(a, '$' RETURNING INT DEFAULT 1 + 1 ON EMPTY NULL ON ERROR)")
    assert isinstance(tree, JsonValue)
    assert tree.args["returning"].logical == INT
    assert tree.args["on_empty"].args["kind"] == "DEFAULT"
    assert tree.args["on_empty"].this.sql() == "1 + 1"
    assert tree.args["on_error"].args["kind"] == "NULL"


@pytest.mark.parametrize(
    ("text", "wrapper"),
    [
        ("", None),
        ("WITHOUT ARRAY WRAPPER", "WITHOUT"),
        ("WITH CONDITIONAL WRAPPER", "CONDITIONAL"),
        ("WITH ARRAY WRAPPER", "UNCONDITIONAL"),
    ],
)
def test_json_query_wrappers(text: str, wrapper: str | None) -> None:
    tree = parse_expression(f"JSON_QUERY(a, '$' {text} EMPTY ARRAY ON EMPTY)")
    assert isinstance(tree, JsonQuery)
    assert tree.args["wrapper"] == wrapper
    assert tree.args["on_empty"].args["kind"] == "EMPTY ARRAY"


def test_nulls_first_is_none_where_not_written() -> None:
    orders = [
        parse_expression(f"SUM(a) OVER (ORDER BY a {text})") for text in ("", "NULLS FIRST", "NULLS LAST")
    ]
    assert [o.args["order"].expressions[0].args["nulls_first"] for o in orders] == [None, True, False]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("FLOOR(a TO DAYS)", ValidationError),
        ("MAP['a']", ValidationError),
        ("ROW()", SqlSyntaxError),
        ("JSON_OBJECT('a', 1)", SqlSyntaxError),
        ("UNNEST(a)", SqlSyntaxError),
        ("CAST(a AS INT NOT NULL)", SqlSyntaxError),
        ("SUM(a IGNORE NULLS)", SqlSyntaxError),
        ("f(a,)", SqlSyntaxError),
    ],
)
def test_refused_calls(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_expression(text)
