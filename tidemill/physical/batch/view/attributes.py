"""The attributes of each node of a batch plan in EXPLAIN, in Flink's terms and order.

The attribute ``runs`` is not Flink's: it tells how a node runs, if its name does not. Comparisons with Flink
ignore it.
"""

from __future__ import annotations

from functools import singledispatch

from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.slices import by_slices
from tidemill.physical.batch.view import nodes as v
from tidemill.physical.batch.view.steps import ADAPTIVE, bracketed, ordered
from tidemill.physical.conditions import conjuncts
from tidemill.physical.explain.attributes import attributes as stream_attributes
from tidemill.physical.explain.attributes import node_name, window_text
from tidemill.physical.explain.printer import Form, Printer, record_text, rows_text
from tidemill.physical.windows import window_of
from tidemill.plan.expressions import OverCall, SortKey
from tidemill.plan.nodes import SetKind
from tidemill.types.logical import Field

Attributes = tuple[tuple[str, str], ...]

_NOT_IN = "hash anti joins by value, by NULL among the others, by own NULL"
_HINTED = {
    "BROADCAST": "{} side broadcast",
    "NEST_LOOP": "{} side broadcast, by hash where there are keys",
    "SHUFFLE_HASH": "by a hash of the {} side's part in each task",
    "SHUFFLE_MERGE": "as a merge of sorted sides",
}
_KERNEL = "in Python workers, a group's rows together"
_SPARK = "as Spark's aggregation, by hash or sorted as memory allows"
_SLICES = "as Spark's aggregation by slice, then by window"


@node_name.register(v.Step)
@node_name.register(v.Join)
def _(node: v.Step | v.Join) -> str:
    return node.title


@node_name.register
def _(node: v.Aggregate) -> str:
    return "HashAggregate" if node.hashed else "SortAggregate"


@node_name.register
def _(node: b.CountedSets) -> str:
    return "Intersect" if node.kind is SetKind.INTERSECT else "Minus"


@node_name.register(b.Unnest)
@node_name.register(b.TableFunction)
def _(node: b.Unnest | b.TableFunction) -> str:
    return "Correlate"


@singledispatch
def attributes(node: p.PhysicalNode) -> Attributes:
    raise NotImplementedError(type(node).__name__)


def _runs(how: str) -> Attributes:
    return (("runs", f"[{how}]"),)


def _names(fields: tuple[Field, ...]) -> str:
    return bracketed([f.name for f in fields])


def _as_in_a_stream(node: p.PhysicalNode) -> Attributes:
    return tuple(stream_attributes(node, Form.PREFIX))


attributes.register(p.Calc, _as_in_a_stream)
attributes.register(p.Sort, _as_in_a_stream)
attributes.register(p.Union, _as_in_a_stream)


@attributes.register
def _(node: p.Match) -> Attributes:
    return (*_as_in_a_stream(node), *_runs(_KERNEL))


@attributes.register
def _(node: v.Step) -> Attributes:
    return (*node.attributes, *_runs(node.by))


@attributes.register
def _(node: b.TableSourceScan) -> Attributes:
    path = node.table.path
    parts = [path.catalog, path.database, path.name]
    if node.columns != tuple(c.name for c in node.table.physical_columns):
        parts += [f"project=[{', '.join(node.columns)}]", "metadata=[]"]
    if node.limit is not None:
        parts.append(f"limit=[{node.limit}]")
    return (("table", f"[[{', '.join(parts)}]]"), ("fields", _names(node.fields)))


@attributes.register
def _(node: p.DataFrameScan) -> Attributes:
    return (("table", f"[[{node.key}]]"),)


@attributes.register
def _(node: p.Values) -> Attributes:
    return (("tuples", rows_text(node.rows)), ("values", _names(node.fields)))


@attributes.register
def _(node: p.Expand) -> Attributes:
    printer = Printer.over(node.input.fields)
    rows = [
        "{" + ", ".join(printer.named(x, f.name) for x, f in zip(row, node.fields, strict=True)) + "}"
        for row in node.projections
    ]
    return (("projects", bracketed(rows)),)


@attributes.register
def _(node: v.Aggregate) -> Attributes:
    grouping = (("groupBy", bracketed(node.groups)),) if node.groups else ()
    whole = node.whole
    runs = _KERNEL if any(c.user for c in whole.calls) else _SLICES if by_slices(whole) else _SPARK
    merging = ("isMerge", f"[{str(node.merges).lower()}]")
    return (merging, *grouping, ("select", bracketed(node.select)), *_runs(runs))


@attributes.register
def _(node: p.SortLimit) -> Attributes:
    return limit_attributes(node.order, node.fields, node.offset, node.fetch, first=False)


def limit_attributes(
    order: tuple[SortKey, ...], fields: tuple[Field, ...], offset: int, fetch: int | None, *, first: bool
) -> tuple[tuple[str, str], ...]:
    """``first``: whether it is the local phase."""
    limits = (
        ("offset", f"[{offset}]"),
        ("fetch", f"[{'unlimited' if fetch is None else fetch}]"),
        ("global", f"[{str(not first).lower()}]"),
    )
    return (("orderBy", ordered(order, fields)), *limits) if order else limits


@attributes.register
def _(node: b.Rank) -> Attributes:
    return rank_attributes(node.call, node.start, node.end, node.input.fields, node.fields, first=False)


def rank_attributes(
    call: OverCall,
    start: int,
    end: int,
    inputs: tuple[Field, ...],
    fields: tuple[Field, ...],
    *,
    first: bool,
) -> tuple[tuple[str, str], ...]:
    return (
        ("rankType", f"[{call.function}]"),
        ("rankRange", f"[rankStart={start}, rankEnd={end}]"),
        ("partitionBy", f"[{Printer.over(inputs).columns(call.partition)}]"),
        ("orderBy", ordered(call.order, inputs)),
        ("global", f"[{str(not first).lower()}]"),
        ("select", f"[{', '.join(f.name for f in fields)}]"),
    )


@attributes.register
def _(node: b.OverAggregate) -> Attributes:
    inputs = node.input.fields
    printer = Printer.over(inputs)
    call_fields = node.fields[len(inputs) :]
    texts = ", ".join(_over_text(c, f, printer) for c, f in zip(node.calls, call_fields, strict=True))
    return (
        ("partitionBy", f"[{printer.columns(node.calls[0].partition)}]"),
        ("orderBy", ordered(node.calls[0].order, inputs)),
        ("window#0", f"[{texts}]"),
    )


def _over_text(call: OverCall, field: Field, printer: Printer) -> str:
    return f"{call.function}({printer.columns(call.args) or '*'}) AS {field.name}"


@attributes.register
def _(node: b.Unnest) -> Attributes:
    call = f"$UNNEST_ROWS$1({Printer.over(node.input.fields).text(node.collection)})"
    texts = _correlate(call, node.fields, outer=node.outer)
    if node.condition is None:
        return texts
    return (*texts, ("condition", f"[{Printer.over(node.fields).text(node.condition)}]"))


@attributes.register
def _(node: b.TableFunction) -> Attributes:
    printer = Printer.over(node.input.fields)
    call = f"{node.function.name}({', '.join(printer.text(a) for a in node.args)})"
    return _correlate(call, node.fields, outer=node.outer)


def _correlate(call: str, fields: tuple[Field, ...], *, outer: bool) -> Attributes:
    return (
        ("invocation", f"[{call}]"),
        ("correlate", f"[table({call})]"),
        ("select", f"[{','.join(f.name for f in fields)}]"),
        ("rowType", f"[{record_text(fields)}]"),
        ("joinType", "[LEFT]" if outer else "[INNER]"),
    )


@attributes.register
def _(node: v.Join) -> Attributes:
    left, right = (node.left, node.right)
    printer = Printer.over((*left.fields, *right.fields), Form.PREFIX)
    where = printer.text(node.condition) if conjuncts(node.condition) else "true"
    return (
        ("joinType", f"[{node.kind.value}]"),
        ("where", f"[{where}]"),
        ("select", _names(node.fields)),
        *((("build", f"[{node.build}]"),) if node.build else ()),
        *_runs(_join_runs(node)),
    )


def _join_runs(node: v.Join) -> str:
    how = _NOT_IN if node.null_aware else ADAPTIVE
    if node.hint and not node.null_aware:
        return _HINTED[node.hint].format(node.build)
    return f"{how}, {node.broadcast} side broadcast" if node.broadcast else how


@attributes.register
def _(node: b.TemporalJoin) -> Attributes:
    left, right = (node.left, node.right)
    sides = Printer.over(left.fields), Printer.over(right.fields)
    keys = [f"{sides[0].text(a)} = {sides[1].text(c)}" for a, c, _ in node.keys]
    printer = Printer.over((*left.fields, *right.fields), Form.PREFIX)
    where = [] if node.condition is None else [printer.text(node.condition)]
    return (
        ("joinType", f"[{node.kind.value}]"),
        ("where", bracketed([*keys, *where])),
        ("time", f"[{left.fields[node.left_time].name}, {right.fields[node.right_time].name}]"),
        ("select", _names(node.fields)),
        *_runs("as the last version in a window by key and time"),
    )


@attributes.register
def _(node: b.LookupJoin) -> Attributes:
    own, lookup = Printer.over(node.input.fields), node.lookup
    keys = [f"{lookup.columns[column]}={own.text(key)}" for key, column in lookup.keys]
    printer = Printer.over(node.fields, Form.PREFIX)
    where = () if lookup.condition is None else (("where", f"[{printer.text(lookup.condition)}]"),)
    return (
        ("table", f"[{lookup.table.path}]"),
        ("joinType", f"[{node.kind.value}]"),
        ("lookup", bracketed(keys)),
        *where,
        ("select", _names(node.fields)),
    )


@attributes.register
def _(node: b.CountedSets) -> Attributes:
    return (("all", "[true]"), ("select", _names(node.fields)), *_runs("as Spark's own"))


@attributes.register
def _(node: b.WindowTableFunction) -> Attributes:
    fields, window = node.input.fields, node.window
    partition = [fields[i].name for i in window.partition]
    text = window_text(window_of(window), f"time_col=[{fields[window.time].name}]", partition)
    over = _runs("as Spark's windows over the rows of a key") if window.kind.is_data_driven else ()
    return (("window", f"[{text}]"), *over)


@attributes.register
def _(node: b.Sink) -> Attributes:
    return (("table", f"[{node.target.table.path}]"), ("fields", _names(node.input.fields)))
