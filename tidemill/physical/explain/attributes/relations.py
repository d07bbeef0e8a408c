"""Attributes of scans, sinks, and nodes that process rows one by one."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.physical import nodes as p
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.names import Attributes, bracket, names
from tidemill.physical.explain.changelog_calls import invocation
from tidemill.physical.explain.printer import Form, Printer, record_text, rows_text
from tidemill.physical.tree import visible
from tidemill.plan.expressions import Expr, Literal


@attributes.register
def _(node: p.TableSourceScan, form: Form) -> Attributes:
    path = node.table.path
    parts = [path.catalog, path.database, path.name]
    if node.filters:
        parts.append(f"filter=[{_conjunction(node.filters, Printer.over(node.fields))}]")
    if node.projected:
        physical = {c.name for c in node.table.physical_columns}
        texts = [c for c in node.columns if c in physical]
        metadata = [c for c in node.columns if c not in physical]
        parts += [f"project={bracket(texts)}", f"metadata={bracket(metadata)}"]
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
    texts = [printer.named(x, f.name) for x, f in zip(node.projections, node.fields, strict=True)]
    where = [] if node.condition is None else [("where", f"[{printer.text(node.condition)}]")]
    return [("select", bracket(texts)), *where]


@attributes.register
def _(node: p.WatermarkAssigner, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields, form)
    return [
        ("rowtime", f"[{node.fields[node.rowtime].name}]"),
        ("watermark", f"[{printer.text(node.watermark)}]"),
    ]


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
    texts = [
        "{" + ", ".join(_expanded(x, f.name, printer) for x, f in zip(row, node.fields, strict=True)) + "}"
        for row in node.projections
    ]
    return [("projects", bracket(texts))]


def _expanded(expr: Expr, name: str, printer: Printer) -> str:
    if isinstance(expr, Literal):
        return f"{'null' if expr.value is None else expr.value} AS {name}"
    return printer.named(expr, name)


@attributes.register
def _(node: p.Union, form: Form) -> Attributes:
    return [("all", "[true]"), ("union", f"[{names(node)}]")]


@attributes.register
def _(node: p.ChangelogNormalize, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields, form)
    condition = [] if node.condition is None else [("condition", f"[{printer.text(node.condition)}]")]
    return [("key", f"[{printer.columns(node.keys)}]"), *condition]


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
def _(node: p.Sink, form: Form) -> Attributes:
    columns = [c.name for c in node.table.columns]
    targets = [columns.index(c) for c in node.target_columns]
    entries: Attributes = [("table", f"[{node.table.path}]")]
    if targets:
        entries.append(("targetColumns", "[" + ",".join(f"[{i}]" for i in targets) + "]"))
    entries.append(("fields", f"[{names(visible(node.input))}]"))
    if node.materialize:
        entries.append(("upsertMaterialize", "[true]"))
    return [*entries, ("conflictStrategy", f"[{node.conflict}]")] if node.conflict else entries
