"""The text of EXPLAIN: three sections, attributes, trees, what occurs twice."""

from __future__ import annotations

from tests.physical.builders import (
    CLICKS,
    USERS,
    aggregate,
    call,
    column,
    explained,
    project,
    scan,
    sink,
    table,
)
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Literal
from tidemill.types.logical import BIGINT, BOOLEAN, STRING, Field

COUNTS = aggregate(scan(CLICKS, "usr", "n"), (0,), call("COUNT", name="c"), call("SUM", 1, name="s"))


def test_three_sections() -> None:
    assert explained(COUNTS, changelog_mode=True) == (
        "== Abstract Syntax Tree ==\n"
        "LogicalAggregate(group=[{0}], c=[COUNT()], s=[SUM($1)])\n"
        "+- LogicalTableScan(table=[[default_catalog, default_database, clicks]])\n"
        "\n"
        "== Optimized Physical Plan ==\n"
        "GroupAggregate(groupBy=[usr], select=[usr, COUNT(*) AS c, SUM(n) AS s], changelogMode=[I,UA])\n"
        "+- Exchange(distribution=[hash[usr]], changelogMode=[I])\n"
        "   +- TableSourceScan(table=[[default_catalog, default_database, clicks, project=[usr, n], "
        "metadata=[]]], fields=[usr, n], changelogMode=[I])\n"
        "\n"
        "== Optimized Execution Plan ==\n"
        "GroupAggregate(groupBy=[usr], select=[usr, COUNT(*) AS c, SUM(n) AS s], "
        "runs=[changelogMode=[I,UB,UA]])\n"
        "+- Exchange(distribution=[hash[usr]])\n"
        "   +- TableSourceScan(table=[[default_catalog, default_database, clicks, project=[usr, n], "
        "metadata=[]]], fields=[usr, n])\n"
    )


def test_conditions_are_prefix_in_the_physical_and_infix_in_the_execution_plan() -> None:
    source = scan(CLICKS)
    number = Call(type=BOOLEAN, function=">", args=(column(source, 2), Literal(type=BIGINT, value=3)))
    known = Call(type=BOOLEAN, function="IS NOT NULL", args=(column(source, 0),))
    both = Call(type=BOOLEAN, function="AND", args=(number, known))
    root = project(n.Filter(fields=source.fields, input=source, condition=both), 0)
    _, physical, execution = explained(root).split("== Optimized ")
    assert "Calc(select=[usr], where=[AND(>(n, 3:BIGINT), IS NOT NULL(usr))])" in physical
    assert "Calc(select=[usr], where=[((n > 3) AND usr IS NOT NULL)])" in execution


def test_what_occurs_twice_is_printed_once() -> None:
    side = scan(USERS, "uid", "name")
    fields = (*side.fields, Field("uid0", side.fields[0].type), Field("name0", STRING))
    equal = Call(
        type=BOOLEAN, function="=", args=(column(side, 0), column(n.Values(fields=fields, rows=()), 2))
    )
    root = n.Join(fields=fields, left=side, right=side, kind=n.JoinKind.INNER, condition=equal)
    execution = explained(root).split("== Optimized Execution Plan ==\n")[1]
    assert execution.splitlines() == [
        "Join(joinType=[InnerJoin], where=[(uid = uid0)], select=[uid, name, uid0, name0], "
        "leftInputSpec=[JoinKeyContainsUniqueKey], rightInputSpec=[JoinKeyContainsUniqueKey], "
        "runs=[changelogMode=[I,UB,UA,D]])",
        ":- Exchange(distribution=[hash[uid]])(reuse_id=[1])",
        ":  +- DropUpdateBefore(runs=[drops nothing])",
        ":     +- TableSourceScan(table=[[default_catalog, default_database, users, project=[uid, name], "
        "metadata=[]]], fields=[uid, name])",
        "+- Reused(reference_id=[1])",
    ]


def test_sink_has_no_mode_and_the_querys_names() -> None:
    target = table("s", {"k": STRING, "c": BIGINT, "s": BIGINT}, "cdc")
    renamed = n.Project(
        fields=tuple(Field(x.name, x.type) for x in target.columns),
        input=COUNTS,
        expressions=tuple(column(COUNTS, i) for i in range(3)),
    )
    root = sink(renamed, target)
    text = explained(root, changelog_mode=True)
    assert (
        "\nSink(table=[default_catalog.default_database.s], fields=[usr, c, s], changelogMode=[NONE])" in text
    )
    assert "\n+- GroupAggregate(" in text
