"""Views, CTEs, scopes and hints: what a name means where it stands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.plan.environment import DATABASE, sample
from tidemill.errors import NotSupportedError, Position, ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.expressions import OverCall
from tidemill.plan.nodes import Exists
from tidemill.plan.optimizer import optimize
from tidemill.plan.rewrite import outer_refs


def columns(sql: str) -> list[tuple[str, str]]:
    return [(f.name, str(f.type)) for f in sample().bind(sql).fields]


def test_a_view_is_read_where_it_was_made_not_where_it_is_used() -> None:
    environment = sample()
    sql = "WITH t AS (SELECT 1 AS other) SELECT * FROM w"
    assert [f.name for f in environment.bind(sql).fields] == ["g", "x"]


def test_declared_view_columns_rename() -> None:
    environment = sample()
    environment.add_view("named", "SELECT id, g FROM t", "p", "q")
    assert [f.name for f in environment.bind("SELECT q FROM named WHERE p = 1").fields] == ["q"]


def test_a_view_that_reads_itself_is_refused_with_the_chain() -> None:
    environment = sample()
    environment.add_view("a", "SELECT * FROM b")
    environment.add_view("b", "SELECT * FROM a")
    with pytest.raises(ValidationError, match=r"refers to itself: .*\.a -> .*\.b -> .*\.a"):
        environment.bind("SELECT * FROM a")


def test_a_cte_hides_a_table_only_inside_its_query() -> None:
    sql = "SELECT id FROM (WITH t AS (SELECT 9 AS z) SELECT z AS id FROM t) UNION ALL SELECT id FROM t"
    assert columns(sql) == [("id", "INT NOT NULL")]


def test_inner_names_hide_outer_ones() -> None:
    plan = sample().bind("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE id = 1)")
    (where,) = (node for node in plan.inputs if isinstance(node, n.Filter))
    assert isinstance(where.condition, Exists)
    assert not outer_refs(where.condition.plan)
    with pytest.raises(ValidationError, match="Column 'name' not found"):
        sample().bind("SELECT name FROM t WHERE EXISTS (SELECT 1 FROM u)")


def test_using_says_the_shared_column_once() -> None:
    assert columns("SELECT * FROM t JOIN u USING (id)") == [
        ("id", "INT NOT NULL"),
        ("g", "STRING"),
        ("v", "INT"),
        ("s", "STRING"),
        ("name", "STRING"),
    ]
    assert columns("SELECT id, t.id, u.id FROM t FULL JOIN u USING (id)") == [
        ("id", "INT"),
        ("id0", "INT"),
        ("id1", "INT"),
    ]


def test_a_row_field_needs_no_table_name() -> None:
    environment = sample()
    environment.add_table("r", a="ROW<b ROW<c INT NOT NULL> NOT NULL>", t="ROW<id INT>")
    fields = environment.bind("SELECT a.b.c, r.a.b.c AS d, (a).b.c AS e, r.t.id FROM r").fields
    assert [(f.name, str(f.type)) for f in fields] == [
        ("c", "INT"),
        ("d", "INT"),
        ("e", "INT"),
        ("id", "INT"),
    ]


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT nmae FROM u", "Did you mean 'name'?"),
        ("SELECT u.ID FROM u", "Did you mean 'id'?"),
        ("SELECT * FROM T", "Did you mean 't'?"),
        ("SELECT CAOLESCE(id, 1) FROM u", "Did you mean 'COALESCE'?"),
        ("SELECT x.id FROM u AS xx", "Did you mean 'xx'?"),
        (
            "SELECT * FROM TABLE(TUMBEL(TABLE u, DESCRIPTOR(id), INTERVAL '5' SECOND))",
            "Did you mean 'TUMBLE'?",
        ),
        ("SELECT * FROM TO_CHANGLOG(input => TABLE u)", "Did you mean 'TO_CHANGELOG'?"),
    ],
)
def test_the_nearest_name_is_offered(sql: str, hint: str) -> None:
    with pytest.raises(ValidationError) as raised:
        sample().bind(sql)
    assert raised.value.hint == hint


def test_errors_point_into_the_text() -> None:
    with pytest.raises(ValidationError) as raised:
        sample().bind("SELECT id,\n  v + nothing\nFROM t")
    assert raised.value.position == Position(2, 7)


@pytest.mark.parametrize(
    ("sql", "feature"),
    [
        ("SELECT * FROM t FOR SYSTEM_TIME AS OF PROCTIME()", "FOR SYSTEM_TIME AS OF"),
        ("SELECT LISTAGG(g) WITHIN GROUP (ORDER BY id) AS c FROM t", "WITHIN GROUP"),
        ("SELECT ARRAY(SELECT id FROM t) AS a FROM t", r"ARRAY\(query\)"),
        ("SELECT * FROM ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(id))", "ML_PREDICT"),
        ("SELECT * FROM TABLE(ML_PREDICT(INPUT => TABLE t, MODEL => MODEL m))", "ML_PREDICT"),
        ("SELECT * FROM t, LATERAL TABLE(VECTOR_SEARCH(TABLE t, DESCRIPTOR(g), t.id, 3))", "VECTOR_SEARCH"),
        ("SELECT * FROM t JOIN LATERAL SNAPSHOT(TABLE t) ON TRUE", "SNAPSHOT"),
        ("SELECT * FROM t JOIN LATERAL TABLE(SNAPSHOT(TABLE t)) ON TRUE", "SNAPSHOT"),
    ],
)
def test_unsupported_features_are_named(sql: str, feature: str) -> None:
    with pytest.raises(NotSupportedError, match=feature) as raised:
        sample().bind(sql)
    assert raised.value.position is not None


def test_the_current_database_is_the_readers() -> None:
    environment = sample()
    environment.add_view("here", "SELECT CURRENT_DATABASE() AS d")
    for query in ("SELECT current_database() AS d", "SELECT d FROM here"):
        plan = optimize(environment.bind(query))
        assert [str(f.type) for f in plan.fields] == ["STRING NOT NULL"]
        assert DATABASE in repr(plan)
    with pytest.raises(ValidationError, match=r"function 'CURRENT_DATABASE'\. Was expecting 0 arguments"):
        environment.bind("SELECT CURRENT_DATABASE(1)")
    with pytest.raises(ValidationError, match="Column 'CURRENT_CATALOG' not found"):
        environment.bind("SELECT CURRENT_CATALOG")


def test_long_chains_of_conditions_bind() -> None:
    wide = " OR ".join(f"id = {i}" for i in range(3000))
    both = " AND ".join(f"id <> {i}" for i in range(3000))
    plan = optimize(sample().bind(f"SELECT id FROM t WHERE ({wide}) AND {both}"))
    assert [f.name for f in plan.fields] == ["id"]


def test_state_ttl_goes_to_the_side_that_is_the_named_table() -> None:
    sql = "SELECT /*+ STATE_TTL('u'='1 d') */ t.id FROM t JOIN u ON t.id = u.id JOIN k ON k.a = t.id"
    plan = sample().bind(sql).inputs[0]
    assert isinstance(plan, n.Join)
    assert isinstance(plan.left, n.Join)
    assert (plan.hints, plan.left.hints) == ((), (("RIGHT", "1 d"),))


def test_state_ttl_of_an_aggregate_reads_its_only_table() -> None:
    aggregate = (
        sample().bind("SELECT /*+ STATE_TTL('t'='2h') */ g, COUNT(*) AS c FROM t GROUP BY g").inputs[0]
    )
    assert isinstance(aggregate, n.Aggregate)
    assert aggregate.hints == (("t", "2h"),)
    with pytest.raises(ValidationError, match="cannot match the name of input tables or views"):
        sample().bind("SELECT /*+ STATE_TTL('zz'='2h') */ g FROM t")


def test_what_hints_say_of_joins_is_nothing_where_there_is_none() -> None:
    for hint in ("BROADCAST(u)", "NEST_LOOP(zz)", "LOOKUP('table'='zz')"):
        sample().bind(f"SELECT /*+ {hint} */ g FROM t")
        sample().bind(f"SELECT /*+ {hint} */ id FROM (SELECT t.id FROM t JOIN u ON t.id = u.id)")
    with pytest.raises(ValidationError, match="cannot match the name of input tables or views"):
        sample().bind("SELECT /*+ BROADCAST(zz) */ t.id FROM t JOIN u ON t.id = u.id")
    for hint in ("BROADCAST", "NEST_LOOP()", "SHUFFLE_HASH('k'='v')"):
        with pytest.raises(ValidationError, match="expecting at least one table or view"):
            sample().bind(f"SELECT /*+ {hint} */ t.id FROM t JOIN u ON t.id = u.id")


def over(sql: str) -> OverCall:
    plan = sample().bind(sql).inputs[0]
    assert isinstance(plan, n.Over)
    return plan.calls[0]


def test_a_named_window_is_completed_by_the_call() -> None:
    call = over("SELECT SUM(v) OVER (w ORDER BY id DESC) AS x FROM t WINDOW w AS (PARTITION BY g)")
    assert (call.partition, [(k.index, k.ascending) for k in call.order]) == ((1,), [(0, False)])
    with pytest.raises(ValidationError, match="already has these clauses"):
        over("SELECT SUM(v) OVER (w ORDER BY id) AS x FROM t WINDOW w AS (ORDER BY v)")
    with pytest.raises(ValidationError, match="Window 'q' not found"):
        over("SELECT SUM(v) OVER q AS x FROM t")


@pytest.mark.parametrize(
    ("frame", "rows", "lower", "upper"),
    [
        ("", False, (None, True), (0, False)),
        ("ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", True, (-2, True), (0, False)),
        ("ROWS UNBOUNDED PRECEDING", True, (None, True), (0, False)),
        ("RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW", False, (-60000, True), (0, False)),
        ("ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING", True, (1, False), (None, False)),
    ],
)
def test_frames(
    frame: str, rows: bool, lower: tuple[int | None, bool], upper: tuple[int | None, bool]
) -> None:
    call = over(f"SELECT SUM(v) OVER (ORDER BY id {frame}) AS x FROM t")
    assert call.rows == rows
    assert (call.lower.offset, call.lower.preceding) == lower
    assert (call.upper.offset, call.upper.preceding) == upper


def test_values_of_constants_are_one_node() -> None:
    plan = sample().bind(
        "SELECT * FROM (VALUES (1, CAST('a' AS STRING)), (CAST(NULL AS BIGINT), 'bcd')) AS v(x, y)"
    )
    (values,) = plan.inputs
    assert isinstance(values, n.Values)
    assert [[c.value for c in row] for row in values.rows] == [[1, "a"], [None, "bcd"]]
    assert {str(c.type) for row in values.rows for c in row} == {"BIGINT", "STRING NOT NULL"}


def test_values_that_must_be_computed_keep_their_rows() -> None:
    plan = sample().bind("SELECT * FROM (VALUES (1, UPPER('a')), (2, CAST('abc' AS VARCHAR(2)))) AS v(x, y)")
    (union,) = plan.inputs
    assert isinstance(union, n.SetOp)
    assert [str(f.type) for f in union.fields] == ["INT NOT NULL", "VARCHAR(2) NOT NULL"]
    assert len(union.branches) == 2


def test_group_windows_want_a_time() -> None:
    sql = "SELECT SUM(id) AS s\nFROM t GROUP BY TUMBLE(id, INTERVAL '1' DAY)"
    with pytest.raises(ValidationError, match="over a time attribute column, but INT NOT NULL") as raised:
        sample().bind(sql)
    assert raised.value.position == Position(2, 24)


@pytest.mark.parametrize(
    ("sql", "message", "position"),
    [
        ("SELECT id FROM t\nUNION SELECT id, id FROM t", "in UNION: 1 and 2 columns", Position(2, 7)),
        (
            "SELECT 1 AS x UNION ALL SELECT 2\nUNION ALL\nSELECT TRUE",
            "Type mismatch in column 1 of UNION ALL: INT NOT NULL and BOOLEAN NOT NULL",
            Position(3, 1),
        ),
        (
            "SELECT 1, 'a' EXCEPT SELECT 1, 2",
            r"column 2 of EXCEPT: CHAR\(1\) NOT NULL and INT NOT NULL",
            None,
        ),
    ],
)
def test_branches_that_do_not_go_together(sql: str, message: str, position: Position | None) -> None:
    with pytest.raises(ValidationError, match=message) as raised:
        sample().bind(sql)
    assert position is None or raised.value.position == position


def test_user_is_a_column_of_that_name() -> None:
    sql = "SELECT user, t.`user`, t.user FROM (VALUES ('x')) AS t(`user`)"
    assert columns(sql) == [
        ("user", "CHAR(1) NOT NULL"),
        ("user0", "CHAR(1) NOT NULL"),
        ("user1", "CHAR(1) NOT NULL"),
    ]
    with pytest.raises(ValidationError, match="Column 'USER' not found"):
        columns("SELECT USER")


def test_a_dollar_stands_in_names() -> None:
    assert columns("SELECT EXPR$0 FROM (SELECT 1)") == [("EXPR$0", "INT NOT NULL")]
    assert columns("SELECT $$t.$a FROM (VALUES (1)) AS $$t($a)") == [("$a", "INT NOT NULL")]


@pytest.mark.parametrize(
    ("bound", "offset"),
    [("CAST(2 AS BIGINT)", -2), ("1 + 1", -2), ("(3)", -3), ("ABS(-2)", -2), ("2 * 3 - 1", -5), ("0", 0)],
)
@pytest.mark.parametrize("kind", ["ROWS", "RANGE"])
def test_the_bound_of_a_frame_is_a_constant_expression(kind: str, bound: str, offset: int) -> None:
    plan = sample().bind(
        f"SELECT SUM(v) OVER (ORDER BY v {kind} BETWEEN {bound} PRECEDING AND CURRENT ROW) FROM t"
    )
    (over,) = [node for node in descend(plan) if isinstance(node, n.Over)]
    assert over.calls[0].lower.offset == offset


@pytest.mark.parametrize("bound", ["-1", "1.5", "v", "CAST('2' AS INT)", "CAST(NULL AS INT)", "2 / 1"])
def test_what_is_no_bound_of_rows(bound: str) -> None:
    sql = f"SELECT SUM(v) OVER (ORDER BY v ROWS BETWEEN {bound} PRECEDING AND CURRENT ROW) FROM t"
    with pytest.raises(ValidationError, match="ROWS value must be a non-negative integral constant"):
        sample().bind(sql)


def descend(plan: n.LogicalNode) -> Iterator[n.LogicalNode]:
    yield plan
    for child in plan.inputs:
        yield from descend(child)


def test_a_field_of_what_is_no_column_has_no_name() -> None:
    query = "SELECT (r).a, q.r.a, m[1].a FROM (SELECT ROW(1, 2) AS r, ARRAY[ROW(1, 2)] AS m) AS q"
    query = query.replace(".a", ".EXPR$1")
    assert [name for name, _ in columns(query)] == ["EXPR$0", "EXPR$1", "EXPR$2"]


def test_rows_in_words_are_rows_of_values() -> None:
    assert columns("VALUES (ROW(1, 'a')), ROW(2, 'bcd')") == [
        ("EXPR$0", "INT NOT NULL"),
        ("EXPR$1", "VARCHAR(3) NOT NULL"),
    ]
    assert [name for name, _ in columns("VALUES ((1, 2)), ((3, 4))")] == ["EXPR$0"]


@pytest.mark.parametrize("join", ["JOIN", "INNER JOIN", "LEFT JOIN", "FULL OUTER JOIN"])
def test_a_join_needs_a_condition(join: str) -> None:
    with pytest.raises(ValidationError, match="join requires a condition"):
        columns(f"SELECT * FROM (VALUES (1)) AS a(x) {join} (VALUES (1)) AS b(y)")
    assert len(columns("SELECT * FROM (VALUES (1)) AS a(x), (VALUES (1)) AS b(y)")) == 2
