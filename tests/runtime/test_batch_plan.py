"""What EXPLAIN shows of a batch statement is what the Spark frame is made of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import new_session
from tidemill.errors import ValidationError
from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.view.flink_view import flink_view
from tidemill.physical.explain.attributes import node_name
from tidemill.plan.optimizer import optimize
from tidemill.session import binding, execution, planning
from tidemill.session.context import SessionContext
from tidemill.session.environment import TableEnvironment
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement

SPARK: dict[type[p.PhysicalNode], tuple[str, ...]] = {
    b.TableSourceScan: ("MapInArrow",),
    p.Values: ("LocalRelation",),
    b.Aggregate: ("Aggregate", "Distinct", "Deduplicate"),
    b.Join: ("Join",),
    p.Sort: ("Sort",),
    p.SortLimit: ("GlobalLimit", "Offset"),
    b.OverAggregate: ("Window",),
    b.Rank: ("Window",),
    p.Expand: ("Expand",),
    b.Unnest: ("Generate",),
    p.Union: ("Union",),
    b.CountedSets: ("Intersect", "Except"),
}
"""Per operator the nodes of Spark's analysed plan that it is; a Calc is any number of them."""

QUERIES = (
    "SELECT usr, COUNT(*) AS c, SUM(n) AS s FROM f GROUP BY usr",
    "SELECT usr, COUNT(DISTINCT url) AS c FROM f GROUP BY usr",
    "SELECT usr, COUNT(DISTINCT url) AS c, COUNT(DISTINCT n) AS d, SUM(n) AS s FROM f GROUP BY usr",
    "SELECT SUM(n) AS s FROM f WHERE n > 1",
    "SELECT DISTINCT usr FROM f",
    "SELECT n + 1 AS m, usr FROM f WHERE usr = 'a' ORDER BY usr",
    "SELECT * FROM f ORDER BY n LIMIT 3",
    "SELECT usr FROM f UNION ALL SELECT url FROM f",
    "SELECT usr FROM f UNION SELECT url FROM f",
    "SELECT usr FROM f INTERSECT SELECT url FROM f",
    "SELECT usr FROM f EXCEPT ALL SELECT url FROM f",
    "SELECT a.n, b.n AS m FROM f a JOIN f b ON a.usr = b.url",
    "SELECT a.n, b.n AS m FROM f a LEFT JOIN f b ON a.usr = b.url AND a.n > b.n",
    "SELECT usr FROM f WHERE EXISTS (SELECT * FROM f g WHERE g.url = f.usr AND g.n > f.n)",
    "SELECT a.n FROM f a, f b, f c WHERE a.usr = c.usr AND c.n = b.n",
    "SELECT usr, url, COUNT(*) AS c FROM f GROUP BY ROLLUP (usr, url)",
    "SELECT n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY usr ORDER BY n) AS r FROM f) WHERE r <= 2",
    "SELECT * FROM (SELECT *, RANK() OVER (PARTITION BY usr ORDER BY n) AS r FROM f) WHERE r <= 2",
    "SELECT usr, x FROM f CROSS JOIN UNNEST(ARRAY[url, usr]) AS u (x)",
)


@pytest.fixture(scope="module")
def environment(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableEnvironment:
    """A file of several splits: Spark leaves out the phases that one partition does not need."""
    folder = tmp_path_factory.mktemp("rows")
    (folder / "f.csv").write_text("".join(f"a,{'b' * 60_000},{i}\n" for i in range(12)))
    made = new_session(execution__runtime_mode="batch", parallelism__default="2")
    made.execute_sql(
        "CREATE TABLE f (usr STRING, url STRING, n BIGINT) "
        f"WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'csv')"
    )
    return made


def compiled(context: SessionContext, query: str) -> tuple[p.PhysicalNode, Any]:
    """The plan of a query, and what Spark makes of its frame."""
    statement = parse_statement(query)
    assert isinstance(statement, s.Query)
    bound = binding.bind(context, statement)
    frame = execution.frame(context, bound)
    return planning.batch(context, optimize(bound)), frame._jdf.queryExecution()


def every(node: p.PhysicalNode) -> Iterator[p.PhysicalNode]:
    """The nodes of a plan, each as often as it is read."""
    yield node
    for below in node.inputs:
        yield from every(below)


def names(plan_text: str) -> Counter[str]:
    """How often each node occurs in a plan as Spark prints it."""
    return Counter(m.group(1) for m in re.finditer(r"^[\s:+|*()\d-]*([A-Z]\w+)", plan_text, re.M))


@pytest.mark.parametrize("query", QUERIES)
def test_every_operator_is_a_piece_of_the_frame(environment: TableEnvironment, query: str) -> None:
    plan, spark_plans = compiled(environment.context, query)
    analyzed = str(spark_plans.analyzed())
    # Spark's optimizer makes joins of them.
    found = names(analyzed) + Counter(Join=len(re.findall(r"\bFilter .*\bexists#", analyzed)))
    shown = Counter(type(node) for node in every(plan))
    wanted: Counter[tuple[str, ...]] = Counter()
    for kind, spark_names in SPARK.items():
        wanted[spark_names] += shown[kind]
    for spark_names, count in wanted.items():
        # A Limit over an order sorts, too.
        sorts = sum(isinstance(n, p.SortLimit) and bool(n.order) for n in every(plan))
        extra = sorts if spark_names == ("Sort",) else 0
        assert sum(found[name] for name in spark_names) == count + extra, (spark_names, str(found))
    assert not set(shown) - {*SPARK, p.Calc}


@pytest.mark.parametrize("kind", ["EXISTS", "NOT EXISTS"])
def test_spark_infers_no_filters_of_a_semi_join(environment: TableEnvironment, kind: str) -> None:
    """With equalities alone and few values it is an IN."""
    query = f"SELECT usr FROM f WHERE {kind} (SELECT * FROM f g WHERE g.n = f.n AND g.usr <> f.usr)"
    _, spark_plans = compiled(environment.context, query)
    optimized = str(spark_plans.optimizedPlan())
    assert re.search(r"Join Left(Semi|Anti)", optimized)
    assert "isnotnull" not in optimized


@pytest.mark.parametrize("query", [q for q in QUERIES if "COUNT" in q or "DISTINCT" in q or "SUM" in q])
def test_phases_that_are_shown_run(environment: TableEnvironment, query: str) -> None:
    plan, spark_plans = compiled(environment.context, query)
    view = flink_view(plan, environment.context.configuration)
    shown = sum(node_name(node).endswith("Aggregate") for node in every(view))
    found = names(str(spark_plans.executedPlan()))
    assert sum(n for name, n in found.items() if name.endswith("Aggregate")) >= shown, str(
        spark_plans.executedPlan()
    )
    assert found["Exchange"] + found["BroadcastExchange"] >= sum(
        node_name(n) == "Exchange" for n in every(view)
    )


@pytest.mark.parametrize(
    ("hint", "join", "name", "pattern"),
    [
        ("BROADCAST(b)", "JOIN", "HashJoin", r"BroadcastHashJoin .*, Inner, BuildRight"),
        ("broadcast(a)", "JOIN", "HashJoin", r"BroadcastHashJoin .*, Inner, BuildLeft"),
        ("BROADCAST(a)", "RIGHT JOIN", "HashJoin", r"BroadcastHashJoin .*, RightOuter, BuildLeft"),
        ("SHUFFLE_HASH(a)", "JOIN", "HashJoin", r"ShuffledHashJoin .*, Inner, BuildLeft"),
        ("SHUFFLE_HASH(a, b)", "LEFT JOIN", "HashJoin", r"ShuffledHashJoin .*, LeftOuter, BuildLeft"),
        ("SHUFFLE_HASH(b)", "RIGHT JOIN", "HashJoin", r"ShuffledHashJoin .*, RightOuter, BuildRight"),
        ("SHUFFLE_HASH(b)", "FULL JOIN", "HashJoin", r"ShuffledHashJoin .*, FullOuter, BuildRight"),
        ("SHUFFLE_MERGE(b)", "FULL JOIN", "SortMergeJoin", r"SortMergeJoin .*, FullOuter"),
        ("NEST_LOOP(b)", "LEFT JOIN", "NestedLoopJoin", r"BroadcastHashJoin .*, LeftOuter, BuildRight"),
        ("BROADCAST(a), SHUFFLE_HASH(b)", "LEFT JOIN", "HashJoin", r"ShuffledHashJoin .*, BuildRight"),
        ("BROADCAST(b), SHUFFLE_HASH(a)", "FULL JOIN", "HashJoin", r"ShuffledHashJoin .*, BuildLeft"),
    ],
)
def test_a_hint_says_how_to_join(
    environment: TableEnvironment, hint: str, join: str, name: str, pattern: str
) -> None:
    """Of several the first that the kind of join allows."""
    query = f"SELECT /*+ {hint} */ a.n, b.url FROM f a {join} f b ON a.usr = b.usr"
    plan, execution = compiled(environment.context, query)
    view = flink_view(plan, environment.context.configuration)
    (node,) = (x for x in every(view) if isinstance(x, b.Join))
    assert node.hint in hint.upper()
    assert node_name(node) == name
    assert re.search(pattern, execution.executedPlan().toString()), execution.executedPlan().toString()
    assert not any(x.hint for x in _joins(environment, query.replace("a.usr = b.usr", "a.n > b.n"), hint))


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("SELECT a.n FROM f a, f b", 2),
        ("SELECT a.n FROM f a JOIN f b ON a.n < b.n AND a.usr LIKE b.url", 2),
        ("SELECT a.n FROM f a LEFT JOIN f b ON a.n < b.n", 2),
        ("SELECT a.n FROM f a FULL JOIN f b ON a.n < b.n", 2),
        ("SELECT n FROM f WHERE EXISTS (SELECT 1 FROM f g WHERE g.n < f.n)", 2),
        ("SELECT n FROM f WHERE NOT EXISTS (SELECT 1 FROM f g WHERE g.n < f.n)", 2),
        ("SELECT n FROM f WHERE (n, usr) NOT IN (SELECT n, url FROM f)", 2),
        ("SELECT a.n FROM f a, f b, f c", 4),
        ("SELECT a.n FROM f a JOIN f b ON a.n = b.n AND a.usr < b.usr", 0),
        ("SELECT a.n FROM f a JOIN f b ON a.n IS NOT DISTINCT FROM b.n", 0),
        ("SELECT n FROM f WHERE n > (SELECT AVG(n) FROM f)", 0),
        ("SELECT n FROM f, (SELECT n AS m FROM f LIMIT 1)", 0),
        ("SELECT n FROM f, (VALUES (1)) AS v (m)", 0),
        ("SELECT usr FROM f INTERSECT SELECT url FROM f", 0),
        ("SELECT v FROM f CROSS JOIN UNNEST(ARRAY[n, 1]) AS x (v)", 0),
        (
            "SELECT v, w FROM f CROSS JOIN UNNEST(ARRAY[n, 1]) AS x (v) "
            "CROSS JOIN UNNEST(ARRAY[n, v]) AS y (w)",
            1,
        ),
    ],
)
def test_what_makes_many_rows_of_a_few_looks_whether_it_was_stopped(
    environment: TableEnvironment, query: str, count: int
) -> None:
    """A join of all pairs with each row of either side, an anti join of the left's, the UNNEST of rows of
    another with each of these. No other plan knows of it."""
    _, execution = compiled(environment.context, query)
    assert str(execution.analyzed()).count("java.lang.Thread.interrupted()") == count


def _joins(environment: TableEnvironment, query: str, hint: str) -> list[b.Join]:
    """Without keys there is only the nested loop."""
    found = [x for x in every(compiled(environment.context, query)[0]) if isinstance(x, b.Join)]
    return [] if hint.startswith("NEST_LOOP") else found


def test_a_hint_of_what_is_not_there(environment: TableEnvironment) -> None:
    with pytest.raises(ValidationError, match="`z` in `BROADCAST`"):
        compiled(environment.context, "SELECT /*+ BROADCAST(z) */ a.n FROM f a JOIN f b ON a.usr = b.usr")
