"""Small bound plans, built by hand."""

from __future__ import annotations

from tidemill.catalog.table import CatalogTable, Column, ObjectPath
from tidemill.changelog.rowkind import ALL_KINDS, INSERT_ONLY, UPSERT, RowKind
from tidemill.config.option import Configuration
from tidemill.physical import nodes as p
from tidemill.physical.conversion import PlannerContext
from tidemill.physical.explain.text import explain_text
from tidemill.physical.explain.view.flink_view import flink_view
from tidemill.physical.planner import plan_job
from tidemill.physical.traits.mini_batch import MiniBatchConfig
from tidemill.physical.tree import walk
from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall, InputRef
from tidemill.types.logical import BIGINT, INT, STRING, Field, LogicalType

KINDS = {"append": INSERT_ONLY, "cdc": ALL_KINDS, "upsert": UPSERT}


def table(
    name: str, columns: dict[str, LogicalType], mode: str = "append", key: tuple[str, ...] = ()
) -> CatalogTable:
    return CatalogTable(
        path=ObjectPath("default_catalog", "default_database", name),
        columns=tuple(Column(name=c, type=t) for c, t in columns.items()),
        options={"mode": mode},
        primary_key=key,
    )


CLICKS = table("clicks", {"usr": STRING, "url": STRING, "n": BIGINT})
ORDERS = table("orders", {"oid": INT, "uid": INT, "product": STRING, "qty": INT}, "cdc", ("oid",))
ORDERS_NO_KEY = table("orders_no_key", {"oid": INT, "uid": INT, "product": STRING, "qty": INT}, "cdc")
USERS = table("users", {"uid": INT, "name": STRING, "city": STRING}, "cdc", ("uid",))


def scan(source: CatalogTable, *columns: str) -> n.Scan:
    by_name = {c.name: c.type for c in source.columns}
    names = columns or tuple(by_name)
    return n.Scan(
        fields=tuple(Field(c, by_name[c]) for c in names),
        table=source,
        columns=names,
        options=tuple(source.options.items()),
    )


def column(node: n.LogicalNode, index: int) -> InputRef:
    return InputRef(type=node.fields[index].type, index=index)


def project(node: n.LogicalNode, *indexes: int) -> n.Project:
    return n.Project(
        fields=tuple(node.fields[i] for i in indexes),
        input=node,
        expressions=tuple(column(node, i) for i in indexes),
    )


def call(function: str, *args: int, name: str = "", distinct: bool = False) -> AggregateCall:
    return AggregateCall(
        function=function, args=args, type=BIGINT, name=name or function.lower(), distinct=distinct
    )


def aggregate(node: n.LogicalNode, keys: tuple[int, ...], *calls: AggregateCall) -> n.Aggregate:
    fields = (*(node.fields[k] for k in keys), *(Field(c.name, c.type) for c in calls))
    return n.Aggregate(fields=fields, input=node, keys=keys, calls=calls)


def sink(node: n.LogicalNode, target: CatalogTable, conflict: str = "") -> n.Sink:
    fields = tuple(Field(c.name, c.type) for c in target.columns)
    return n.Sink(
        fields=fields,
        input=node,
        table=target,
        options=tuple(target.options.items()),
        conflict=conflict,
    )


def _sink_kinds(target: CatalogTable, options: object, wanted: frozenset[RowKind]) -> frozenset[RowKind]:
    taken = {"append": INSERT_ONLY, "upsert": UPSERT, "cdc": ALL_KINDS}[target.options["mode"]]
    return wanted & taken


def plan(
    root: n.LogicalNode,
    options: dict[str, str] | None = None,
    *,
    executed: bool = False,
    mini_batch: MiniBatchConfig | None = None,
) -> p.PhysicalNode:
    """The plan as Flink shows it, or (``executed``) as it runs."""
    context = PlannerContext(
        config=Configuration(options),
        source_kinds=lambda source, _: KINDS[source.options["mode"]],
        sink_kinds=_sink_kinds,
        mini_batch=mini_batch,
    )
    return plan_job([root], context)[0] if executed else flink_view(root, context)


def explained(root: n.LogicalNode, *, changelog_mode: bool = False) -> str:
    return explain_text(root, plan(root), plan(root, executed=True), changelog_mode=changelog_mode)


def modes(node: p.PhysicalNode) -> list[str]:
    """``Name kinds`` of every node, parents first; Calc aside."""
    return [
        f"{type(x).__name__} {''.join(_LETTERS[k] for k in sorted(x.traits.kinds))}"
        for x in walk(node)
        if not isinstance(x, p.Calc)
    ]


_LETTERS = {RowKind.INSERT: "I", RowKind.UPDATE_BEFORE: "-", RowKind.UPDATE_AFTER: "+", RowKind.DELETE: "D"}
