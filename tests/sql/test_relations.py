from __future__ import annotations

import pytest
from sqlglot import exp

from tests.sql.shape import query, shape
from tidemill.errors import SqlSyntaxError
from tidemill.sql.expressions import Descriptor, FlinkHint, FunctionTable, TableArgument


def source(text: str) -> exp.Expression:
    node = query(f"SELECT * FROM {text}").args["from_"].this
    assert isinstance(node, exp.Expression)
    return node


def joins(text: str) -> list[tuple[str, str | None, str | None, str | None]]:
    found = query(f"SELECT * FROM {text}").args["joins"]
    return [(j.this.alias_or_name, j.method or None, j.side or None, j.kind or None) for j in found]


def test_joins_are_a_flat_list() -> None:
    assert joins("a, b JOIN c ON x LEFT JOIN d ON y CROSS JOIN e") == [
        ("b", None, None, None),
        ("c", None, None, "INNER"),
        ("d", None, "LEFT", "OUTER"),
        ("e", None, None, "CROSS"),
    ]


def test_natural_and_using() -> None:
    assert joins("a NATURAL FULL OUTER JOIN b INNER JOIN c USING (x, y)") == [
        ("b", "NATURAL", "FULL", "OUTER"),
        ("c", None, None, "INNER"),
    ]
    using = query("SELECT * FROM a JOIN c USING (x, y)").args["joins"][0].args["using"]
    assert [name.name for name in using] == ["x", "y"]


@pytest.mark.parametrize(
    "join", ["RIGHT JOIN c ON x", "FULL JOIN c ON x", "NATURAL JOIN c", "JOIN c USING (x)"]
)
def test_a_comma_does_not_reach_into_joins_that_would_change(join: str) -> None:
    (comma,) = query(f"SELECT * FROM a, b {join}").args["joins"]
    assert comma.this.name == "b"
    assert [j.this.name for j in comma.this.args["joins"]] == ["c"]


def test_a_join_in_parentheses_is_nested() -> None:
    (join,) = query("SELECT * FROM a JOIN (b JOIN c ON x) ON y").args["joins"]
    assert join.this.name == "b"
    assert [j.this.name for j in join.this.args["joins"]] == ["c"]
    assert shape(join.args["on"]) == "y"


def test_a_parenthesis_before_a_derived_table_may_be_a_join() -> None:
    node = source("((SELECT 1) AS a JOIN (VALUES (1)) AS b (x) ON TRUE)")
    assert isinstance(node, exp.Subquery)
    assert node.alias == "a"
    (join,) = node.args["joins"]
    assert isinstance(join.this, exp.Values)
    assert [c.name for c in join.this.args["alias"].columns] == ["x"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(t)", "Expected query or join"),
        ("(t JOIN u ON a) AS x", "Join expression encountered in illegal context"),
        ("TABLE t", 'Encountered "t" at line 1, column 21.'),
    ],
)
def test_what_a_parenthesis_may_not_hold(text: str, message: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        source(text)
    assert caught.value.message == message


def test_table_with_path_hints_version_and_alias() -> None:
    node = source("c.d.t /*+ OPTIONS('k'='v') */ FOR SYSTEM_TIME AS OF o.ts AS r (x, y)")
    assert isinstance(node, exp.Table)
    assert [part.name for part in node.parts] == ["c", "d", "t"]
    (hint,) = node.args["hints"]
    assert isinstance(hint, FlinkHint)
    assert (hint.name, hint.options) == ("OPTIONS", (("k", "v"),))
    assert shape(node.args["version"].expression) == "o.ts"
    assert (node.alias, [c.name for c in node.args["alias"].columns]) == ("r", ["x", "y"])


def test_unnest_and_lateral() -> None:
    tree = query(
        "SELECT * FROM t CROSS JOIN UNNEST(t.a) WITH ORDINALITY AS u (e, n), "
        "LATERAL TABLE(f(t.b)) AS v (w), LATERAL (SELECT t.c) AS q"
    )
    unnest, function, derived = (join.this for join in tree.args["joins"])
    assert isinstance(unnest, exp.Unnest)
    assert unnest.args["offset"]
    assert isinstance(function, FunctionTable)
    assert function.args["lateral"]
    assert shape(function.this) == "(f t.b)"
    assert [c.name for c in function.args["alias"].columns] == ["w"]
    assert isinstance(derived, exp.Lateral)
    assert derived.alias == "q"


def test_window_table_function_with_positions_and_with_names() -> None:
    plain = source("TABLE(HOP(TABLE c.t, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '2' HOUR)) AS w")
    assert isinstance(plain, FunctionTable)
    assert plain.alias == "w"
    table, descriptor, *sizes = plain.this.expressions
    assert isinstance(table, TableArgument)
    assert [part.name for part in table.this.parts] == ["c", "t"]
    assert isinstance(descriptor, Descriptor)
    assert [d.name for d in descriptor.expressions] == ["ts"]
    assert len(sizes) == 2
    named = source(
        "TABLE(SESSION(DATA => TABLE t PARTITION BY (a, b) ORDER BY c, TIMECOL => DESCRIPTOR(ts), "
        "GAP => INTERVAL '1' MINUTE))"
    )
    keys = [argument.this.name for argument in named.this.expressions]
    assert keys == ["DATA", "TIMECOL", "GAP"]
    data = named.this.expressions[0].expression
    assert [shape(k) for k in data.args["partition_by"]] == ["a", "b"]
    assert shape(data.args["order"]) == "(Order (Ordered c))"


@pytest.mark.parametrize("query", ["(SELECT a, ts FROM t)", "SELECT a, ts FROM t", "((SELECT a, ts FROM t))"])
def test_a_query_in_place_of_a_table_may_have_keys(query: str) -> None:
    node = source(f"TABLE(SESSION({query} PARTITION BY a, DESCRIPTOR(ts), INTERVAL '1' MINUTE))")
    data = node.this.expressions[0]
    assert isinstance(data, TableArgument)
    assert data.this.find(exp.Select) is not None
    assert [shape(k) for k in data.args["partition_by"]] == ["a"]
    assert len(node.this.expressions) == 3


def test_match_recognize_is_read_whole() -> None:
    node = source(
        "t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FINAL LAST(B.v) AS v ONE ROW PER MATCH "
        "AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+? (C | D){2,3}) WITHIN INTERVAL '1' HOUR "
        "DEFINE B AS B.v > PREV(B.v, 1)) AS m"
    )
    assert isinstance(node, exp.MatchRecognize)
    assert node.alias == "m"
    assert node.args["pattern"].name == "A B+? (C | D){2,3}"
    assert node.args["after"].name == "AFTER MATCH SKIP TO NEXT ROW"
    assert shape(node.args["define"][0]) == "(Alias (GT B.v (PREV B.v 1)) B)"
    assert shape(node.args["within"]) == "(IntervalLiteral 1 HOUR)"
