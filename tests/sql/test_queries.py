from __future__ import annotations

import pytest
from sqlglot import exp

from tests.sql.shape import query, shape
from tidemill.errors import NotSupportedError, SqlSyntaxError
from tidemill.sql.expressions import FlinkHint


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("SELECT a AS x, b y, t.*, * FROM t", "(Alias a x) (Alias b y) (Column Star t) Star"),
        ("SELECT 1 `select`", "(Alias 1 select)"),
    ],
)
def test_select_items(text: str, tree: str) -> None:
    assert " ".join(shape(item) for item in query(text).expressions) == tree


def test_clauses_are_where_sqlglot_keeps_them() -> None:
    tree = query(
        "SELECT DISTINCT a FROM t WHERE b GROUP BY c, d HAVING e WINDOW w AS (PARTITION BY f), "
        "v AS (w ORDER BY g) QUALIFY h ORDER BY i DESC, 2 LIMIT 10 OFFSET 5 ROWS"
    )
    assert isinstance(tree, exp.Select)
    assert tree.args["distinct"] is not None
    assert shape(tree.args["where"]) == "(Where b)"
    assert shape(tree.args["group"]) == "(Group c d)"
    assert shape(tree.args["having"]) == "(Having e)"
    assert [shape(w) for w in tree.args["windows"]] == ["(Window w f)", "(Window v w (Order (Ordered g)))"]
    assert shape(tree.args["qualify"]) == "(Qualify h)"
    assert shape(tree.args["order"]) == "(Order (Ordered i True) (Ordered 2))"
    assert shape(tree.args["limit"]) == "(Limit 10)"
    assert shape(tree.args["offset"]) == "(Offset 5)"


def test_grouping_sets_have_lists_of_their_own() -> None:
    tree = query(
        "SELECT 1 FROM t GROUP BY a, GROUPING SETS ((b, c), (d), e, ()), ROLLUP (f, (g, h)), CUBE (i)"
    )
    group = tree.args["group"]
    assert [shape(e) for e in group.expressions] == ["a"]
    (sets,) = group.args["grouping_sets"]
    assert [shape(e) for e in sets.expressions] == ["(Tuple b c)", "(Paren d)", "e", "Tuple"]
    assert [shape(e) for e in group.args["rollup"]] == ["(Rollup f (Tuple g h))"]
    assert [shape(e) for e in group.args["cube"]] == ["(Cube i)"]


def test_intersect_binds_tighter_and_the_rest_goes_left() -> None:
    tree = query("SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3 EXCEPT ALL SELECT 4 ORDER BY 1")
    assert isinstance(tree, exp.Except)
    assert not tree.args["distinct"]
    assert tree.args["order"] is not None
    union = tree.this
    assert isinstance(union, exp.Union)
    assert not union.args["distinct"]
    assert isinstance(union.expression, exp.Intersect)
    assert union.expression.args["distinct"]


def test_parentheses_change_the_grouping_and_keep_inner_limits_inside() -> None:
    tree = query("SELECT 1 UNION (SELECT 2 EXCEPT SELECT 3) UNION ALL (SELECT 4 LIMIT 1)")
    assert isinstance(tree, exp.Union)
    assert isinstance(tree.expression, exp.Subquery)
    assert shape(tree.expression.this.args["limit"]) == "(Limit 1)"
    assert isinstance(tree.this.expression, exp.Except)


def test_an_outer_limit_is_not_lost_behind_an_inner_one() -> None:
    tree = query("(SELECT 1 LIMIT 5) LIMIT 2")
    assert isinstance(tree, exp.Select)
    assert shape(tree.args["limit"]) == "(Limit 2)"
    inner = tree.args["from_"].this
    assert isinstance(inner, exp.Subquery)
    assert shape(inner.this.args["limit"]) == "(Limit 5)"


@pytest.mark.parametrize("text", ["FETCH FIRST 3 ROWS ONLY", "LIMIT 3", "FETCH NEXT 3 ROW ONLY"])
def test_fetch_is_limit(text: str) -> None:
    assert shape(query(f"SELECT 1 FROM t {text}").args["limit"]) == "(Limit 3)"


def test_limit_all_is_no_limit() -> None:
    assert query("SELECT 1 FROM t LIMIT ALL").args.get("limit") is None


def test_values_rows_are_tuples() -> None:
    values = query("VALUES 1, (2), ROW(3, 'x')").args["from_"].this
    assert isinstance(values, exp.Values)
    assert [shape(row) for row in values.expressions] == ["(Tuple 1)", "(Tuple 2)", "(Tuple 3 'x')"]


def test_common_table_expressions() -> None:
    tree = query("WITH a (x) AS (SELECT 1), b AS (TABLE a) SELECT * FROM b")
    ctes = tree.args["with_"].expressions
    assert [(c.alias, [i.name for i in c.args["alias"].columns]) for c in ctes] == [("a", ["x"]), ("b", [])]
    assert shape(ctes[1].this) == "(Select Star (From (Table a)))"


def test_hints_of_a_select() -> None:
    hint = query("SELECT /*+ STATE_TTL('a' = '1d', 'b'='2d'), broadcast(t, u) */ x FROM t").args["hint"]
    first, second = hint.expressions
    assert isinstance(first, FlinkHint)
    assert (first.name, first.options) == ("STATE_TTL", (("a", "1d"), ("b", "2d")))
    assert (second.name, second.arguments) == ("BROADCAST", ("t", "u"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1 AS year", 'Encountered "year" at line 1, column 13.'),
        ("SELECT 1 AS YEAR", "Incorrect syntax near the keyword 'YEAR' at line 1, column 13."),
        ("SELECT ln FROM t", 'Encountered "ln" at line 1, column 8.'),
        ("SELECT old FROM t", 'Encountered "old" at line 1, column 8.'),
        ("SELECT 1 FROM t returns", 'Encountered "returns" at line 1, column 17.'),
        ("SELECT COUNT(*) FROM (SELECT 1 AS x", 'Encountered "<EOF>" at line 1, column 35.'),
        ("SELECT 1 x y", 'Encountered "y" at line 1, column 12.'),
        ("SELECT UNNEST(a)", "Incorrect syntax near the keyword 'UNNEST' at line 1, column 8."),
        ("SELECT 1 MINUS SELECT 2", "MINUS is not allowed under the current SQL conformance level"),
        ("SELECT 1 != 2", "Bang equal '!=' is not allowed under the current SQL conformance level"),
    ],
)
def test_messages(text: str, message: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        query(text)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("PIVOT (SUM(a) FOR b IN (1))", "PIVOT"),
        ("TABLESAMPLE SYSTEM(10)", "TABLESAMPLE"),
        ("ASOF JOIN u ON a = b", "ASOF JOIN"),
        ("AS v LEFT ASOF JOIN u ON a = b", "ASOF JOIN"),
        ("CROSS APPLY u", "APPLY"),
    ],
)
def test_missing_features_are_named(text: str, feature: str) -> None:
    with pytest.raises(NotSupportedError, match=feature):
        query(f"SELECT * FROM t {text}")
