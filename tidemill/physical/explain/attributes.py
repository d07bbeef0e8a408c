"""What EXPLAIN says of each physical node: Flink's node name and attributes in Flink's order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatch

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.physical import nodes as p
from tidemill.physical.changelog_calls import invocation
from tidemill.physical.conditions import conjuncts
from tidemill.physical.explain.patterns import pattern_attributes
from tidemill.physical.explain.printer import Form, Printer, call_text, order_text, record_text, rows_text
from tidemill.physical.tree import visible
from tidemill.plan.expressions import Call, Expr, InputRef, Literal, OverCall, SortKey, UserCall
from tidemill.plan.nodes import JoinKind, Months, WindowKind
from tidemill.types.logical import BOOLEAN

Attributes = list[tuple[str, str]]


@singledispatch
def node_name(node: p.PhysicalNode) -> str:
    return type(node).__name__


@node_name.register
def _(node: p.SortLimit) -> str:
    return "SortLimit" if node.order else "Limit"


@node_name.register
def _(node: p.Sort) -> str:
    return "TemporalSort" if node.by_time else "Sort"


@node_name.register
def _(node: p.Calc) -> str:
    return "PythonCalc" if any(isinstance(x, UserCall) for x in node.projections) else "Calc"


@node_name.register
def _(node: p.WindowAggregate) -> str:
    if node.window.group:
        return "GroupWindowAggregate"
    return "WindowAggregate" if node.local is None else "GlobalWindowAggregate"


@node_name.register
def _(node: p.WindowsOfRows) -> str:
    return "WindowTableFunction"


@node_name.register
def _(node: p.WindowRank) -> str:
    return "WindowDeduplicate" if node.is_deduplicate else "WindowRank"


@node_name.register(p.ToChangelog)
@node_name.register(p.FromChangelog)
def _(node: p.PhysicalNode) -> str:
    return "ProcessTableFunction"


@node_name.register
def _(node: p.Correlate) -> str:
    return "Correlate" if node.user is None else "PythonCorrelate"


@node_name.register
def _(node: p.GroupAggregate) -> str:
    return "PythonGroupAggregate" if any(c.user for c in node.calls) else "GroupAggregate"


def describe(node: p.PhysicalNode) -> str:
    """One node as messages name it: ``GroupAggregate(groupBy=[g], select=[g, COUNT(*) AS c])``."""
    return f"{node_name(node)}({joined(attributes(node, Form.PREFIX))})"


def joined(pairs: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name}={value}" for name, value in pairs)


def execution_name(node: p.PhysicalNode) -> str:
    if isinstance(node, p.WindowRank):
        return node_name(node)
    return "Deduplicate" if isinstance(node, p.Rank) and node.is_deduplicate else node_name(node)


def hints(node: p.PhysicalNode) -> Attributes:
    """What stands after the changelog mode."""
    ttl = node.ttl_hints if isinstance(node, p.Join | p.GroupAggregate) else ()
    if not ttl:
        return []
    options = ", ".join(f"{side}={text}" for side, text in sorted(ttl))
    return [("stateTtlHints", f"[[[STATE_TTL options:{{{options}}}]]]")]


def names(node: p.PhysicalNode) -> str:
    return ", ".join(f.name for f in node.fields)


def _bracket(parts: Sequence[str]) -> str:
    return f"[{', '.join(parts)}]"


@singledispatch
def attributes(node: p.PhysicalNode, form: Form) -> Attributes:
    return []


@attributes.register
def _(node: p.TableSourceScan, form: Form) -> Attributes:
    path = node.table.path
    parts = [path.catalog, path.database, path.name]
    if node.filters:
        parts.append(f"filter=[{_conjunction(node.filters, Printer.over(node.fields))}]")
    if node.projected:
        physical = {c.name for c in node.table.physical_columns}
        shown = [c for c in node.columns if c in physical]
        metadata = [c for c in node.columns if c not in physical]
        parts += [f"project={_bracket(shown)}", f"metadata={_bracket(metadata)}"]
    return [("table", f"[[{', '.join(parts)}]]"), ("fields", f"[{names(node)}]")]


def _conjunction(filters: Sequence[Expr], printer: Printer) -> str:
    texts = [printer.text(f) for f in filters]
    while len(texts) > 1:
        texts[:2] = [f"and({texts[0]}, {texts[1]})"]
    return texts[0]


@attributes.register
def _(node: p.DataFrameScan, form: Form) -> Attributes:
    return [("table", f"[[{node.key}]]"), ("fields", f"[{names(node)}]")]


@attributes.register
def _(node: p.Values, form: Form) -> Attributes:
    tuples = ("tuples", rows_text(node.rows))
    return [tuples] if form is Form.INFIX else [("type", f"[{record_text(node.fields)}]"), tuples]


@attributes.register
def _(node: p.Calc, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields, form)
    shown = [printer.named(x, f.name) for x, f in zip(node.projections, node.fields, strict=True)]
    where = [] if node.condition is None else [("where", f"[{printer.text(node.condition)}]")]
    return [("select", _bracket(shown)), *where]


@attributes.register
def _(node: p.WatermarkAssigner, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields, form)
    return [
        ("rowtime", f"[{node.fields[node.rowtime].name}]"),
        ("watermark", f"[{printer.text(node.watermark)}]"),
    ]


def _span(milliseconds: int, months: int = 0) -> str:
    """A window's size as Flink prints durations: in the largest unit that divides it."""
    if months:
        return f"{months // 12} y" if months % 12 == 0 else f"{months} mo"
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds} ms"


def window_text(window: p.Window, times: str, partition: Sequence[str] = ()) -> str:
    """``TUMBLE(time_col=[ts], size=[10 s])``; ``times`` says how rows get their windows."""
    months = window.months or Months()
    size, slide = _span(window.size, months.size), _span(window.slide, months.slide)
    parts = {
        WindowKind.TUMBLE: [f"size=[{size}]"],
        WindowKind.HOP: [f"size=[{size}]", f"slide=[{slide}]"],
        WindowKind.CUMULATE: [f"max_size=[{size}]", f"step=[{slide}]"],
        WindowKind.SESSION: [f"gap=[{size}]"],
        WindowKind.DYNAMIC_CUMULATE: [f"step=[{slide}]", *([f"gap=[{size}]"] if window.size else [])],
    }[window.kind]
    if window.offset or months.offset:
        parts.append(f"offset=[{_span(window.offset, months.offset)}]")
    if partition:
        parts.append(f"partition keys={_bracket(list(partition))}")
    return f"{window.kind.value}({', '.join([times, *parts])})"


@attributes.register(p.WindowTableFunction)
@attributes.register(p.WindowsOfRows)
def _(node: p.WindowTableFunction | p.WindowsOfRows, form: Form) -> Attributes:
    fields = node.input.fields
    partition = [fields[i].name for i in node.partition]
    return [("window", f"[{window_text(node.window, f'time_col=[{fields[node.time].name}]', partition)}]")]


@attributes.register
def _(node: p.WindowAggregate, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields, form)
    names = [f.name for f in node.fields]
    partition = [node.input.fields[k].name for k in node.keys] if node.window.kind.made_by_rows else []
    retract = node.input.traits.kinds != INSERT_ONLY
    calls = [call_text(c, printer, retract=retract) for c in node.calls]
    shown = zip(node.properties, names[len(node.keys) + len(node.calls) :], strict=True)
    properties = [f"{_property(kind, node.window)}('w$) AS {name}" for kind, name in shown]
    times = _cut_by(node)
    if node.local is not None:
        calls, times = list(node.merged), f"{_SLICES[node.attached][0]}=[{_SLICES[node.attached][1]}]"
    return [
        *_group_by(node.input, node.keys),
        ("window", f"[{window_text(node.window, times, partition)}]"),
        *_emit(node.emit),
        ("select", _bracket([*names[: len(node.keys)], *calls, *properties])),
    ]


def _emit(emit: p.Emit | None) -> Attributes:
    if emit is None:
        return []
    parts = [
        f"{kind} no delay" if delay == 0 else f"{kind} delay {delay} millisecond"
        for kind, delay in (("early", emit.early), ("late", emit.late))
        if delay is not None
    ]
    return [("emit", _bracket(parts))]


@attributes.register
def _(node: p.LocalWindowAggregate, form: Form) -> Attributes:
    keys = [node.input.fields[k].name for k in node.keys]
    return [
        *_group_by(node.input, node.keys),
        ("window", f"[{window_text(node.window, _cut_by(node))}]"),
        ("select", _bracket([*keys, *node.select, f"slice_end('w$) AS {_SLICES[node.attached][1]}"])),
    ]


def _cut_by(node: p.WindowAggregate | p.LocalWindowAggregate) -> str:
    time = node.input.fields[node.time].name
    return f"win_end=[{time}]" if node.attached else f"time_col=[{time}]"


_SLICES = {False: ("slice_end", "$slice_end"), True: ("win_end", "$window_end")}
"""By whether rows have their window already, what a global phase is told of it."""


def _property(kind: str, window: p.Window) -> str:
    if kind != "time":
        return kind
    return "proctime" if window.proctime else "rowtime"


@attributes.register
def _(node: p.MiniBatchAssigner, form: Form) -> Attributes:
    return [("interval", f"[{node.interval}ms]"), ("mode", f"[{node.mode}]")]


@attributes.register
def _(node: p.Exchange, form: Form) -> Attributes:
    return [("distribution", f"[{distribution(node.input, node.keys)}]")]


def distribution(node: p.PhysicalNode, keys: tuple[int, ...]) -> str:
    return f"hash[{Printer.over(node.fields).columns(keys)}]" if keys else "single"


@attributes.register
def _(node: p.Expand, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields, form)
    shown = [
        "{" + ", ".join(_expanded(x, f.name, printer) for x, f in zip(row, node.fields, strict=True)) + "}"
        for row in node.projections
    ]
    return [("projects", _bracket(shown))]


def _expanded(expr: Expr, name: str, printer: Printer) -> str:
    if isinstance(expr, Literal):
        return f"{'null' if expr.value is None else expr.value} AS {name}"
    return printer.named(expr, name)


def _group_by(node: p.PhysicalNode, keys: tuple[int, ...], phase: str = "") -> Attributes:
    found: Attributes = []
    if keys:
        found.append(("groupBy", f"[{Printer.over(node.fields).columns(keys)}]"))
    if phase:
        found.append(("partialFinalType", f"[{phase}]"))
    return found


@attributes.register
def _(node: p.GroupAggregate, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields)
    retract = node.input.traits.kinds != INSERT_ONLY
    calls = [call_text(c, printer, retract=retract) for c in node.calls]
    keys = [printer.column(k) for k in node.keys]
    return [*_group_by(node.input, node.keys, node.phase), ("select", _bracket([*keys, *calls]))]


@attributes.register(p.LocalGroupAggregate)
@attributes.register(p.GlobalGroupAggregate)
def _(node: p.LocalGroupAggregate | p.GlobalGroupAggregate, form: Form) -> Attributes:
    return [*_group_by(node.input, node.keys, node.phase), ("select", _bracket(node.select))]


@attributes.register
def _(node: p.IncrementalGroupAggregate, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields)
    return [
        ("partialAggGrouping", f"[{printer.columns(node.partial_keys)}]"),
        ("finalAggGrouping", f"[{printer.columns(node.final_keys)}]"),
        ("select", _bracket(node.select)),
    ]


@attributes.register
def _(node: p.Union, form: Form) -> Attributes:
    return [("all", "[true]"), ("union", f"[{names(node)}]")]


@attributes.register
def _(node: p.ChangelogNormalize, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields, form)
    condition = [] if node.condition is None else [("condition", f"[{printer.text(node.condition)}]")]
    return [("key", f"[{printer.columns(node.keys)}]"), *condition]


@attributes.register
def _(node: p.Rank, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields)
    if form is Form.INFIX and node.is_deduplicate:
        return [
            ("keep", "[FirstRow]" if node.keeps_first else "[LastRow]"),
            ("key", f"[{printer.columns(node.partition)}]"),
            ("order", f"[{node.time}]"),
            ("outputInsertOnly", f"[{str(node.insert_only).lower()}]"),
        ]
    order = [order_text(k, printer) for k in node.order]
    if node.time == "ROWTIME":
        order[0] = f"ROWTIME {order[0]}"
    return [
        ("strategy", f"[{node.strategy}]"),
        ("rankType", f"[{node.function}]"),
        ("rankRange", f"[rankStart={node.start}, rankEnd={node.end}]"),
        ("partitionBy", f"[{printer.columns(node.partition)}]"),
        ("orderBy", _bracket(order)),
        ("select", f"[{names(node)}]"),
    ]


@attributes.register
def _(node: p.WindowRank, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields)
    window = ("window", f"[{_attached(node.attached, node.input)}]")
    if node.is_deduplicate:
        return [
            window,
            ("keep", "[FirstRow]" if node.keeps_first else "[LastRow]"),
            ("partitionKeys", f"[{printer.columns(node.keys)}]"),
            ("orderKey", f"[{printer.column(node.order[0].index)}]"),
            ("order", f"[{node.time}]"),
        ]
    return [
        window,
        ("rankType", f"[{node.function}]"),
        ("rankRange", f"[rankStart={node.start}, rankEnd={node.end}]"),
        ("partitionBy", f"[{printer.columns(node.keys)}]"),
        ("orderBy", _order(node.order, node.input)),
        ("select", f"[{names(node)}]"),
    ]


def _attached(window: p.AttachedWindow, node: p.PhysicalNode) -> str:
    start, end = node.fields[window.start].name, node.fields[window.end].name
    return window_text(window.window, f"win_start=[{start}], win_end=[{end}]")


@attributes.register
def _(node: p.SortLimit, form: Form) -> Attributes:
    fetch = "unlimited" if node.fetch is None else str(node.fetch)
    found: Attributes = [("offset", f"[{node.offset}]"), ("fetch", f"[{fetch}]")]
    if not node.order:
        return found
    return [("orderBy", _order(node.order, node)), *found, ("strategy", f"[{node.strategy}]")]


def _order(order: tuple[SortKey, ...], node: p.PhysicalNode) -> str:
    printer = Printer.over(node.fields)
    return _bracket([order_text(k, printer) for k in order])


@attributes.register
def _(node: p.Sort, form: Form) -> Attributes:
    return [("orderBy", _order(node.order, node))]


@attributes.register
def _(node: p.OverAggregate, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields)
    first = node.calls[0]
    order = [order_text(k, printer) for k in first.order]
    shown = [f.name for f in node.input.fields] + [_over_text(c, printer) for c in node.calls]
    partition = [("partitionBy", f"[{printer.columns(first.partition)}]")] if first.partition else []
    ordering = [("orderBy", _bracket(order))] if order else []
    return [*partition, *ordering, ("window", f"[ {_frame(first)}]"), ("select", _bracket(shown))]


@attributes.register
def _(node: p.Match, form: Form) -> Attributes:
    inputs = node.input.fields
    printer = Printer.over(inputs)
    partition = [("partitionBy", f"[{printer.columns(node.partition)}]")] if node.partition else []
    order = [("orderBy", _bracket([order_text(k, printer) for k in node.order]))]
    return [
        *partition,
        *order,
        *pattern_attributes(node.pattern, node.definitions, node.measures, node.fields, inputs),
    ]


def _over_text(call: OverCall, printer: Printer) -> str:
    distinct = "DISTINCT " if call.distinct else ""
    return f"{call.function}({distinct}{printer.columns(call.args) or '*'}) AS {call.name}"


def _frame(call: OverCall) -> str:
    bounds = []
    for bound in (call.lower, call.upper):
        side = "PRECEDING" if bound.preceding else "FOLLOWING"
        if bound.offset == 0:
            bounds.append("CURRENT ROW")
        else:
            bounds.append(f"{'UNBOUNDED' if bound.offset is None else abs(bound.offset)} {side}")
    return f"{'ROWS' if call.rows else 'RANGE'} BETWEEN {bounds[0]} AND {bounds[1]}"


@attributes.register
def _(node: p.Correlate, form: Form) -> Attributes:
    outer = Printer(tuple(f"$cor0.{f.name}" for f in node.input.fields))
    function = "$UNNEST_ROWS$1" if node.function == "UNNEST" else node.function
    call = f"{function}({', '.join(outer.text(a) for a in node.args)})"
    return [
        ("invocation", f"[{call}]"),
        ("correlate", f"[table({call})]"),
        ("select", f"[{','.join(f.name for f in node.fields)}]"),
        ("rowType", f"[{record_text(node.fields)}]"),
        ("joinType", "[LEFT]" if node.outer else "[INNER]"),
        *(() if node.condition is None else (("condition", f"[{_chosen(node, form)}]"),)),
    ]


def _chosen(node: p.Correlate, form: Form) -> str:
    assert node.condition is not None
    return Printer.over(node.fields, form).text(node.condition)


@attributes.register(p.ToChangelog)
@attributes.register(p.FromChangelog)
def _(node: p.ToChangelog | p.FromChangelog, form: Form) -> Attributes:
    return [
        ("invocation", f"[{invocation(node)}]"),
        ("uid", f"[{node.call.uid or 'null'}]"),
        ("select", f"[{','.join(f.name for f in node.fields)}]"),
        ("rowType", f"[{record_text(node.fields)}]"),
    ]


@attributes.register
def _(node: p.Join, form: Form) -> Attributes:
    found: Attributes = [
        ("joinType", f"[{node.kind.value}]"),
        ("where", f"[{_where(node, form)}]"),
        ("select", f"[{names(node)}]"),
        ("leftInputSpec", f"[{node.left_spec}]"),
        ("rightInputSpec", f"[{node.right_spec}]"),
    ]
    return [*found, ("miniBatch", "[true]")] if node.mini_batch else found


@attributes.register
def _(node: p.IntervalJoin, form: Form) -> Attributes:
    bounds = node.bounds
    times = (
        f"isRowTime={str(bounds.rowtime).lower()}, leftLowerBound={bounds.lower}, "
        f"leftUpperBound={bounds.upper}, leftTimeIndex={bounds.left}, rightTimeIndex={bounds.right}"
    )
    return [
        ("joinType", f"[{_INTERVAL_KINDS[node.kind]}]"),
        ("windowBounds", f"[{times}]"),
        ("where", f"[{_where(node, form)}]"),
        ("select", f"[{names(node)}]"),
    ]


@attributes.register
def _(node: p.TemporalJoin, form: Form) -> Attributes:
    both = (*node.left.fields, *node.right.fields)
    printer = Printer.over(node.fields if len(node.fields) == len(both) else both, form)
    condition, versions = join_condition(node), _version_condition(node)
    parts = [versions] if condition is None else [*conjuncts(condition), versions]
    return [
        ("joinType", f"[{node.kind.value}]"),
        ("where", f"[{printer.text(Call(type=BOOLEAN, function='AND', args=tuple(parts)))}]"),
        ("select", f"[{names(node)}]"),
    ]


@attributes.register
def _(node: p.LookupJoin, form: Form) -> Attributes:
    printer = Printer.over(node.fields, form)
    keys = [f"{node.columns[column]}={node.input.fields[own].name}" for own, column in node.keys]
    where = [] if node.condition is None else [("where", f"[{printer.text(node.condition)}]")]
    return [
        ("table", f"[{node.table.path}]"),
        ("joinType", f"[{node.kind.value}]"),
        ("lookup", _bracket(keys)),
        *where,
        ("select", f"[{names(node)}]"),
    ]


def _version_condition(node: p.TemporalJoin) -> Expr:
    """What Flink shows of the times and keys that find a version."""
    fields, width = (*node.left.fields, *node.right.fields), len(node.left.fields)

    def call(name: str, columns: Iterable[int]) -> Expr:
        args = tuple(InputRef(type=fields[i].type, index=i) for i in columns)
        return Call(type=BOOLEAN, function=f"__TEMPORAL_JOIN_{name}", args=args)

    times = tuple(InputRef(type=fields[i].type, index=i) for i in (node.left_time, width + node.right_time))
    keys = (
        call("CONDITION_PRIMARY_KEY", (width + i for i in node.version_key)),
        call("LEFT_KEY", node.left_keys),
        call("RIGHT_KEY", (width + i for i in node.right_keys)),
    )
    return Call(type=BOOLEAN, function="__TEMPORAL_JOIN_CONDITION", args=(*times, *keys))


_INTERVAL_KINDS = {
    JoinKind.INNER: "InnerJoin",
    JoinKind.LEFT: "LeftOuterJoin",
    JoinKind.RIGHT: "RightOuterJoin",
    JoinKind.FULL: "FullOuterJoin",
}


@attributes.register
def _(node: p.WindowJoin, form: Form) -> Attributes:
    return [
        ("leftWindow", f"[{_attached(node.left_window, node.left)}]"),
        ("rightWindow", f"[{_attached(node.right_window, node.right)}]"),
        ("joinType", f"[{node.kind.value}]"),
        ("where", f"[{_where(node, form)}]"),
        ("select", f"[{names(node)}]"),
    ]


def _where(node: p.Join, form: Form) -> str:
    both = (*node.left.fields, *node.right.fields)
    printer = Printer.over(node.fields if len(node.fields) == len(both) else both, form)
    condition = join_condition(node)
    return "true" if condition is None else printer.text(condition)


def join_condition(node: p.Join) -> Expr | None:
    """Keys and residual as one condition over left fields, then right fields."""
    fields = (*node.left.fields, *node.right.fields)

    def column(index: int) -> InputRef:
        return InputRef(type=fields[index].type, index=index)

    parts: list[Expr] = []
    keys = zip(node.left_keys, node.right_keys, node.null_safe, strict=True)
    for number, (left, right, null_safe) in enumerate(keys):
        if isinstance(node, p.WindowJoin) and node.is_window(left, right):
            continue
        sides = (column(left), column(right + len(node.left.fields)))
        operator = "IS NOT DISTINCT FROM" if null_safe else "="
        equals = Call(type=BOOLEAN, function=operator, args=sides)
        parts.append(_null_aware(equals, sides) if number < node.null_aware else equals)
    if node.residual is not None:
        parts.append(node.residual)
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Call(type=BOOLEAN, function="AND", args=tuple(parts))


def _null_aware(equals: Expr, sides: tuple[InputRef, ...]) -> Expr:
    nulls = [Call(type=BOOLEAN, function="IS NULL", args=(s,)) for s in sides if s.type.nullable]
    return Call(type=BOOLEAN, function="OR", args=(*nulls, equals)) if nulls else equals


@attributes.register
def _(node: p.Sink, form: Form) -> Attributes:
    columns = [c.name for c in node.table.columns]
    targets = [columns.index(c) for c in node.target_columns]
    found: Attributes = [("table", f"[{node.table.path}]")]
    if targets:
        found.append(("targetColumns", "[" + ",".join(f"[{i}]" for i in targets) + "]"))
    found.append(("fields", f"[{names(visible(node.input))}]"))
    if node.materialize:
        found.append(("upsertMaterialize", "[true]"))
    return [*found, ("conflictStrategy", f"[{node.conflict}]")] if node.conflict else found
