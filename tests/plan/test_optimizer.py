"""Where rules put things, and what the driver does with a rule that breaks a plan."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.plan.environment import FakeEnvironment, sample
from tidemill.errors import InternalError, NotSupportedError
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Expr, InputRef, Literal
from tidemill.plan.nodes import Exists
from tidemill.plan.optimizer import apply_everywhere, optimize
from tidemill.plan.predicates import conjuncts, disjuncts, rejects_nulls
from tidemill.plan.rewrite import input_indexes
from tidemill.plan.rules.push_filters import push_filters
from tidemill.types import logical as t


def plan_of(sql: str) -> n.LogicalNode:
    return optimize(sample().bind(sql))


def find(plan: n.LogicalNode, kind: type[n.LogicalNode]) -> list[n.LogicalNode]:
    own = [plan] if isinstance(plan, kind) else []
    return [*own, *(x for child in plan.inputs for x in find(child, kind))]


def scans(plan: n.LogicalNode) -> list[n.Scan]:
    return [x for x in find(plan, n.Scan) if isinstance(x, n.Scan)]


def test_a_scan_reads_only_what_is_used() -> None:
    plan = plan_of("SELECT g, SUM(v) AS x FROM t WHERE id > 1 GROUP BY g")
    assert [s.columns for s in scans(plan)] == [("id", "g", "v")]


def test_a_scan_keeps_one_column_for_counting() -> None:
    assert [s.columns for s in scans(plan_of("SELECT COUNT(*) AS c FROM t"))] == [("id",)]


def test_an_unread_aggregate_is_not_computed() -> None:
    plan = plan_of("SELECT g FROM (SELECT g, COUNT(*) AS c, SUM(v) AS x FROM t GROUP BY g) WHERE x > 1")
    (aggregate,) = find(plan, n.Aggregate)
    assert isinstance(aggregate, n.Aggregate)
    assert [c.function for c in aggregate.calls] == ["SUM"]


def test_filters_are_offered_to_the_scan_and_stay_above() -> None:
    plan = plan_of("SELECT id FROM (SELECT id, v + 1 AS w FROM t) WHERE w > 2 AND id < 9")
    (scan,), (above,) = scans(plan), find(plan, n.Filter)
    assert isinstance(above, n.Filter)
    assert above.input is scan
    assert scan.filters == conjuncts(above.condition)
    assert len(scan.filters) == 2


def joined(plan: n.LogicalNode) -> list[tuple[str, ...]]:
    """The tables of every join's right side, from the lowest join up, and whether it has a condition."""
    return [
        (*(s.table.path.name for s in scans(j.right)), "keyed" if conjuncts(j.condition) else "crossed")
        for j in reversed(find(plan, n.Join))
        if isinstance(j, n.Join)
    ]


def test_joins_wait_for_their_keys() -> None:
    plan = plan_of("SELECT t.v FROM t, u, k WHERE t.v = k.a AND u.id = k.c AND t.id < u.id")
    assert joined(plan) == [("k", "keyed"), ("u", "keyed")]
    assert [f.name for f in plan.fields] == ["v"]


def test_connected_joins_stay_as_written() -> None:
    plan = plan_of("SELECT t.v FROM t JOIN (u JOIN k ON u.id = k.a) ON t.id = k.c")
    assert joined(plan) == [("k", "keyed"), ("u", "k", "keyed")]
    assert len(find(plan, n.Project)) == 1


def test_what_nothing_connects_is_crossed_last() -> None:
    plan = plan_of("SELECT t.v FROM u, t, k WHERE t.v = k.a")
    assert joined(plan) == [("k", "keyed"), ("t", "k", "crossed")]


def test_a_key_of_every_alternative_is_a_key() -> None:
    plan = plan_of("SELECT t.v FROM t, u WHERE (t.id = u.id AND v = 1) OR (name = 'x' AND t.id = u.id)")
    (join,) = find(plan, n.Join)
    assert isinstance(join, n.Join)
    assert len(conjuncts(join.condition)) == 2


def filters(plan: n.LogicalNode) -> list[tuple[str, int]]:
    """Of every Filter right above a scan the table and how many alternatives it has."""
    found = [f for f in find(plan, n.Filter) if isinstance(f, n.Filter) and isinstance(f.input, n.Scan)]
    return [(scans(f)[0].table.path.name, len(disjuncts(f.condition))) for f in found]


_SEVERAL = "(t.v = 1 AND u.id > 2 AND k.c = 3) OR (u.id < 4 AND t.v = 5 AND k.c = 6 AND t.id > 0)"


def test_what_all_alternatives_demand_of_a_table_is_asked_of_it() -> None:
    plan = plan_of(f"SELECT t.v FROM t, u, k WHERE t.id = u.id AND u.id = k.a AND ({_SEVERAL})")
    assert sorted(filters(plan)) == [("k", 2), ("t", 2), ("u", 2)]
    top, below = find(plan, n.Join)
    assert isinstance(top, n.Join)
    assert isinstance(below, n.Join)
    # The whole condition stays above, and what it is of two of the tables at their join.
    assert [len(input_indexes(x)) for x in conjuncts(top.condition)] == [2, 4]
    assert [len(input_indexes(x)) for x in conjuncts(below.condition)] == [2, 2 + 1]
    assert top.fields == plan.fields or len(find(plan, n.Project)) >= 1


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("SELECT t.v FROM t, u WHERE t.id = u.id AND ((t.v = 1 AND u.id = 2) OR t.v = 3)", [("t", 2)]),
        ("SELECT t.v FROM t, u WHERE t.id = u.id AND ((t.v = 1 AND u.id = 2) OR t.v = u.id)", []),
        ("SELECT t.v FROM t LEFT JOIN u ON t.id = u.id AND ((t.v = 1 AND u.id = 2) OR t.v = 3)", []),
        (
            "SELECT t.v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.id = u.id"
            " AND ((t.v = 1 AND u.id > 2) OR (t.v = 3 AND u.id < 9)))",
            [("t", 2), ("u", 2)],
        ),
        ("SELECT t.v FROM t, u WHERE t.id = u.id AND ((t.v = 1 AND RAND() < u.id) OR t.v = 3)", []),
    ],
)
def test_an_alternative_that_demands_nothing_of_a_table_lets_all_its_rows_in(
    query: str, asked: list[tuple[str, int]]
) -> None:
    assert sorted(filters(plan_of(query))) == asked


def test_filters_stay_above_a_watermark() -> None:
    environment = FakeEnvironment()
    table = environment.add_table("e", ts="TIMESTAMP(3)", v="INT")
    watermark = n.Watermark(
        fields=environment.bind("SELECT * FROM e").fields,
        input=environment.bind("SELECT * FROM e"),
        rowtime=0,
        expression=InputRef(type=table.columns[0].type, index=0),
    )
    condition = Call(
        type=t.BOOLEAN,
        function=">",
        args=(InputRef(type=t.INT, index=1), Literal(type=t.INT.with_nullable(False), value=1)),
    )
    filtered = n.Filter(fields=watermark.fields, input=watermark, condition=condition)
    assert isinstance(optimize(filtered), n.Filter)
    assert push_filters(filtered) is None


@pytest.mark.parametrize(
    ("kind", "where", "narrowed"),
    [
        ("LEFT", "u.name > 'a'", n.JoinKind.INNER),
        ("LEFT", "u.name IS NULL", n.JoinKind.LEFT),
        ("LEFT", "u.name > 'a' OR t.v = 1", n.JoinKind.LEFT),
        ("RIGHT", "t.v + 1 = 2", n.JoinKind.INNER),
        ("FULL", "t.v = 1", n.JoinKind.LEFT),
        ("FULL", "u.name = 'a'", n.JoinKind.RIGHT),
        ("FULL", "u.name = t.g", n.JoinKind.INNER),
        ("FULL", "COALESCE(t.v, 1) = 1", n.JoinKind.FULL),
    ],
)
def test_outer_joins_narrow_where_nulls_are_rejected(kind: str, where: str, narrowed: n.JoinKind) -> None:
    plan = plan_of(f"SELECT t.id FROM t {kind} JOIN u ON t.id = u.id WHERE {where}")
    assert [j.kind for j in find(plan, n.Join) if isinstance(j, n.Join)] == [narrowed]


def test_a_comma_join_gets_its_condition_from_where() -> None:
    plan = plan_of("SELECT t.id FROM t, u WHERE t.id = u.id AND t.v = 1")
    (join,) = find(plan, n.Join)
    assert isinstance(join, n.Join)
    assert [getattr(p, "function", "") for p in conjuncts(join.condition)] == ["="]
    assert isinstance(join.left, n.Filter)


def test_not_in_is_null_aware_only_where_nulls_can_be() -> None:
    nullable = find(plan_of("SELECT id FROM t WHERE v NOT IN (SELECT id FROM u)"), n.Join)
    strict = find(plan_of("SELECT id FROM t WHERE id NOT IN (SELECT id FROM u)"), n.Join)
    aware = [j.null_aware for j in (*nullable, *strict) if isinstance(j, n.Join)]
    assert aware == [True, False]


def test_a_union_of_very_many_branches_is_a_few() -> None:
    """The constants are rows, and what reads one table reads it once."""
    texts = [f"SELECT id, {i} AS k FROM t UNION ALL SELECT {i}, {-i}" for i in range(60)]
    plan = plan_of(" UNION ALL ".join([*texts, "SELECT id, 0 FROM u WHERE id = 1"]))
    assert isinstance(plan, n.SetOp)
    kinds = [type(branch) for branch in plan.branches]
    assert sorted(k.__name__ for k in kinds) == ["Expand", "Project", "Values"]
    (values,), (expand,) = find(plan, n.Values), find(plan, n.Expand)
    assert isinstance(values, n.Values)
    assert isinstance(expand, n.Expand)
    assert (len(values.rows), len(expand.projections)) == (60, 60)
    assert scans(expand)[0].columns == ("id",)


def test_filters_of_a_union_of_very_many_branches_are_asked_above_one_scan() -> None:
    plan = plan_of(" UNION ALL ".join(f"SELECT v FROM t WHERE id = {i}" for i in range(150)))
    assert [s.columns for s in scans(plan)] == [("id", "v")] * 2
    assert [len(x.projections) for x in find(plan, n.Expand) if isinstance(x, n.Expand)] == [100, 50]


def test_a_short_union_stays() -> None:
    plan = plan_of(" UNION ALL ".join(f"SELECT {i}" for i in range(32)))
    assert isinstance(plan, n.SetOp)
    assert len(plan.branches) == 32


@pytest.mark.parametrize(
    "rest",
    ["WHERE FALSE", "LIMIT 0", "WHERE v = 1 AND FALSE", "WHERE NOT TRUE", "WHERE 1 = 0", "WHERE 'b' <= 'a'"],
)
def test_constant_conditions_read_nothing(rest: str) -> None:
    assert scans(plan_of(f"SELECT id FROM t {rest}")) == []


@pytest.mark.parametrize("rest", ["WHERE 1 <> 0", "WHERE 'a' < 'b'", "WHERE v = 1"])
def test_other_conditions_read(rest: str) -> None:
    assert len(scans(plan_of(f"SELECT id FROM t {rest}"))) == 1


NOTHING = "(SELECT * FROM t WHERE FALSE)"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a.id FROM {NOTHING} a JOIN t ON a.id = t.id",
        f"SELECT t.id FROM t JOIN {NOTHING} a ON a.id = t.id",
        f"SELECT a.id FROM {NOTHING} a LEFT JOIN t ON a.id = t.id",
        f"SELECT a.id FROM {NOTHING} a FULL JOIN {NOTHING} b ON a.id = b.id",
        f"SELECT id FROM t WHERE id IN (SELECT id FROM {NOTHING})",
        f"SELECT id, COUNT(*) FROM {NOTHING} GROUP BY id",
        f"SELECT id FROM {NOTHING} INTERSECT SELECT id FROM t",
        f"SELECT id FROM {NOTHING} EXCEPT SELECT id FROM t",
        f"SELECT id FROM {NOTHING} UNION ALL SELECT id FROM {NOTHING}",
    ],
)
def test_what_reads_nothing_gives_nothing(query: str) -> None:
    plan = plan_of(query)
    assert isinstance(plan, n.Values)
    assert plan.rows == ()


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT t.id FROM t LEFT JOIN {NOTHING} a ON a.id = t.id",
        f"SELECT a.id FROM {NOTHING} a RIGHT JOIN t ON a.id = t.id",
        f"SELECT a.id FROM {NOTHING} a FULL JOIN t ON a.id = t.id",
        f"SELECT id FROM t WHERE id NOT IN (SELECT id FROM {NOTHING})",
        f"SELECT id FROM t EXCEPT SELECT id FROM {NOTHING}",
        f"SELECT id FROM t UNION ALL SELECT id FROM {NOTHING}",
    ],
)
def test_an_empty_side_that_is_not_needed_leaves_the_other(query: str) -> None:
    assert len(scans(plan_of(query))) == 1


def test_a_global_aggregate_of_nothing_is_a_row() -> None:
    plan = plan_of("SELECT COUNT(*), SUM(v), MAX(id) FROM t WHERE FALSE")
    assert isinstance(plan, n.Values)
    assert [[x.value for x in row] for row in plan.rows] == [[0, None, None]]
    assert isinstance(plan_of("SELECT LISTAGG('x') FROM t WHERE FALSE"), n.Aggregate)


def test_a_random_value_is_neither_copied_nor_pushed() -> None:
    plan = plan_of("SELECT r, r + 1 AS s FROM (SELECT RAND() AS r FROM t) WHERE r > 0.5")
    assert len(find(plan, n.Project)) == 2
    (above,) = find(plan, n.Filter)
    assert isinstance(above, n.Filter)
    assert isinstance(above.input, n.Project)


def test_rejects_nulls_needs_every_branch_of_an_or() -> None:
    column = InputRef(type=t.INT, index=0)
    equal = Call(type=t.BOOLEAN, function="=", args=(column, column))
    missing = Call(type=t.BOOLEAN.with_nullable(False), function="IS NULL", args=(column,))
    either = Call(type=t.BOOLEAN, function="OR", args=(equal, missing))
    assert rejects_nulls(equal, frozenset({0}))
    assert not rejects_nulls(either, frozenset({0}))
    assert not rejects_nulls(equal, frozenset({1}))


def test_the_driver_names_a_rule_that_changes_columns() -> None:
    def widening(node: n.LogicalNode) -> n.LogicalNode | None:
        return node.inputs[0] if isinstance(node, n.Project) else None

    with pytest.raises(InternalError, match="widening changed the columns of Project"):
        apply_everywhere(sample().bind("SELECT id FROM t"), widening, {})


def test_the_driver_names_a_rule_that_never_ends() -> None:
    def restless(node: n.LogicalNode) -> n.LogicalNode | None:
        return replace(node)

    with pytest.raises(InternalError, match="restless does not come to an end at Scan"):
        apply_everywhere(sample().bind("SELECT id FROM t"), restless, {})


def test_nulls_are_counted_only_where_an_in_may_not_be_false() -> None:
    counted = "SELECT id FROM t WHERE {} OR id = 1"
    for condition, wanted in (("v IN (SELECT v FROM t)", 0), ("v NOT IN (SELECT v FROM t)", 2)):
        aggregates = find(plan_of(counted.format(condition)), n.Aggregate)
        calls = [c for a in aggregates if isinstance(a, n.Aggregate) for c in a.calls]
        assert [c.function for c in calls] == ["COUNT"] * wanted, condition


def test_a_subquery_nobody_unnests_is_refused() -> None:
    plan = sample().bind("SELECT id FROM t")
    exists = Exists(type=t.BooleanType(nullable=False), plan=plan)
    fields = (t.Field("a", exists.type),)
    expand = n.Expand(fields=fields, input=plan, projections=((exists,),))
    with pytest.raises(NotSupportedError, match="subquery in Expand"):
        optimize(expand)


@pytest.mark.parametrize("operator", ["+", "*", "||", "AND", "OR"])
def test_long_chains_have_little_depth_and_keep_their_order(operator: str) -> None:
    operand = {"||": "CAST({} AS STRING)", "AND": "v <> {}", "OR": "v = {}"}.get(operator, "{}")
    text = f" {operator} ".join(
        operand.format(f"ABS(v - {i})" if operator in "+*" else i) for i in range(500)
    )
    before, after = (
        x.expressions[0]
        for x in (sample().bind(f"SELECT {text} AS x FROM t"), plan_of(f"SELECT {text} AS x FROM t"))
        if isinstance(x, n.Project)
    )
    assert [x for x in after.walk() if isinstance(x, Literal)] == [
        x for x in before.walk() if isinstance(x, Literal)
    ]
    assert after.type == before.type
    assert depth(after) < 20


def depth(expr: Expr) -> int:
    return 1 + max(map(depth, expr.children), default=0)


def test_sums_whose_grouping_matters_stay() -> None:
    plan = plan_of("SELECT " + " + ".join(["CAST(v AS DOUBLE)"] * 100) + " AS x FROM t")
    assert isinstance(plan, n.Project)
    assert depth(plan.expressions[0]) > 100


@pytest.mark.parametrize(
    "condition",
    [
        "v > 5 AND v < 3",
        "v > 5 AND 5 >= v",
        "v = 1 AND id = 2 AND v = 3",
        "v = 1 AND v <> 1",
        "v BETWEEN 5 AND 3",
        "v IN (1, 2) AND v IN (3, 4)",
        "v NOT IN (1, 2) AND v = 1",
        "v NOT IN (1, NULL)",
        "v IS NULL AND v > 1",
        "v IS NULL AND v IS NOT NULL",
        "v = CAST(NULL AS INT)",
        "s = 'x' AND s = 'y'",
        "(v > 5 AND v < 3) OR (s < 'a' AND s > 'b')",
        "id > 0 AND (v + 1 > 5 AND v + 1 < 3 OR s IS NULL AND s = 'a')",
    ],
)
def test_conditions_that_no_row_meets(condition: str) -> None:
    plan = plan_of(f"SELECT id FROM t WHERE {condition}")
    assert isinstance(plan, n.Values)
    assert plan.rows == ()
    joined_rows = plan_of(
        f"SELECT u.id FROM u JOIN (SELECT * FROM t) AS t ON u.id = t.id AND {_of_t(condition)}"
    )
    assert isinstance(joined_rows, n.Values)


@pytest.mark.parametrize(
    "condition",
    [
        "v >= 5 AND v <= 5",
        "v > 5 AND v < 6",
        "v IN (1, 2) AND v = 2",
        "v > 5 AND id < 3",
        "NOT (v > 5 AND v < 3)",
        "(v > 5 AND v < 3) IS NULL",
        "v > 5 OR v < 3",
        "s > '5' AND s < 'a'",
        "RAND_INTEGER(9) > 5 AND RAND_INTEGER(9) < 3",
    ],
)
def test_conditions_that_rows_can_meet(condition: str) -> None:
    assert scans(plan_of(f"SELECT id FROM t WHERE {condition}"))


def test_what_is_shown_of_a_contradiction_can_be_null() -> None:
    (scan,) = scans(plan_of("SELECT v > 5 AND v < 3 AS x FROM t"))
    assert "v" in scan.columns


def test_the_alternatives_of_a_contradiction_are_asked_alone() -> None:
    (filtered,) = find(plan_of("SELECT id FROM t WHERE v > 5 AND v < 3 OR g = 'x'"), n.Filter)
    assert isinstance(filtered, n.Filter)
    assert disjuncts(filtered.condition) == (filtered.condition,)


def _of_t(condition: str) -> str:
    """The condition with the names that both sides have told apart."""
    return re.sub(r"\b(v|id|s)\b(?!')", r"t.\1", condition)


@pytest.mark.parametrize(
    ("query", "nested"),
    [
        ("SELECT JSON_OBJECT('a' VALUE (JSON_ARRAY(id))) AS x FROM t", True),
        (
            "SELECT JSON_ARRAY(CAST(JSON_ARRAY(id) AS STRING), COALESCE(JSON_ARRAY(id), 'z')) AS x FROM t",
            True,
        ),
        (
            "SELECT JSON_ARRAY(j) AS x FROM (SELECT JSON_OBJECT() AS j, v FROM t) WHERE v > 2",
            True,
        ),
        ("SELECT JSON_ARRAYAGG(j) AS x FROM (SELECT JSON_ARRAY(v) AS j FROM t)", True),
        ("SELECT JSON_ARRAY(j) AS x FROM (SELECT JSON_ARRAY(v) AS j FROM t ORDER BY id LIMIT 1)", True),
        (
            "SELECT JSON_ARRAY(j) AS x FROM (SELECT JSON_ARRAY() AS j UNION ALL SELECT JSON_ARRAY(v) FROM t)",
            True,
        ),
        ("SELECT JSON_ARRAY(j) AS x FROM (SELECT DISTINCT JSON_ARRAY(v) AS j FROM t)", False),
        ("SELECT JSON_OBJECTAGG(KEY s VALUE JSON_ARRAY(v)) AS x FROM t", True),
        ("SELECT JSON_ARRAY(JSON_ARRAYAGG(v)) AS x FROM t GROUP BY g", False),
        ("SELECT JSON_ARRAYAGG(j) AS x FROM (SELECT JSON_ARRAYAGG(v) AS j FROM t GROUP BY g)", False),
        ("SELECT JSON_ARRAY(CASE WHEN id > 1 THEN JSON_ARRAY(v) ELSE '{}' END) AS x FROM t", False),
        (
            "SELECT JSON_ARRAY(j) AS x FROM (SELECT JSON_ARRAY(v) AS j, id FROM t) q JOIN u ON u.id = q.id",
            False,
        ),
    ],
)
def test_json_made_by_json_functions_is_not_quoted_again(query: str, nested: bool) -> None:
    """As Flink 2.3 answers these queries."""
    options = re.findall(r"\('RAW', '([^']*)'\)", str(plan_of(query)))
    assert bool(options) == nested


def test_format_json_is_refused() -> None:
    for call in ("JSON_OBJECT('a' VALUE s FORMAT JSON)", "JSON_VALUE(s FORMAT JSON, '$.a')"):
        with pytest.raises(NotSupportedError, match="FormatJson"):
            plan_of(f"SELECT {call} AS x FROM t")


def test_group_by_distinct_leaves_out_equal_sets() -> None:
    (expand,) = find(
        plan_of("SELECT g, SUM(v) AS x FROM t GROUP BY DISTINCT ROLLUP (g), ROLLUP (g)"), n.Expand
    )
    assert isinstance(expand, n.Expand)
    assert len(expand.projections) == 2
    (every,) = find(plan_of("SELECT g, SUM(v) AS x FROM t GROUP BY ROLLUP (g), ROLLUP (g)"), n.Expand)
    assert isinstance(every, n.Expand)
    assert len(every.projections) == 4
    once = plan_of("SELECT g, SUM(v) AS x FROM t GROUP BY DISTINCT GROUPING SETS ((g), (g))")
    assert find(once, n.Expand) == []
