"""ToChangelog and FromChangelog: changes as rows, and rows as changes."""

from __future__ import annotations

from tidemill.errors import NotSupportedError
from tidemill.physical import nodes as p
from tidemill.physical.batch import conversion as batch
from tidemill.physical.conversion import PlannerContext, convert, convert_node
from tidemill.physical.digests import incidental
from tidemill.physical.explain.attributes.dispatch import attributes, node_name
from tidemill.physical.explain.attributes.texts import Attributes
from tidemill.physical.explain.printer import Form, Printer, record_text
from tidemill.physical.explain.syntax_tree import line
from tidemill.physical.finish import finish
from tidemill.physical.sinks import check_only_inserts
from tidemill.physical.traits.arrival import arrival_of, as_inputs
from tidemill.physical.traits.changelog_mode import (
    Updates,
    all_changes,
    modifications,
    needs_both,
    only_inserts,
    satisfied,
)
from tidemill.plan import nodes as n

_DEFAULT = "DEFAULT()"
_NO_COLUMNS = Printer(())


@convert_node.register
def _(node: n.ToChangelog, context: PlannerContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    return finish(p.ToChangelog(fields=node.fields, input=child, codes=node.codes, call=node.call))


@convert_node.register
def _(node: n.FromChangelog, context: PlannerContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    check_only_inserts(child)
    return finish(
        p.FromChangelog(fields=node.fields, input=child, op=node.op, codes=node.codes, call=node.call)
    )


@batch.convert_node.register(n.ToChangelog)
@batch.convert_node.register(n.FromChangelog)
def _(node: n.ToChangelog | n.FromChangelog, context: batch.BatchContext) -> p.PhysicalNode:
    """NotSupportedError: a batch has no changes, and Flink has no batch plan for these functions either."""
    name = "TO_CHANGELOG" if isinstance(node, n.ToChangelog) else "FROM_CHANGELOG"
    raise NotSupportedError(f"{name} runs in streaming mode only")


@line.register(n.ToChangelog)
@line.register(n.FromChangelog)
def _(node: n.ToChangelog | n.FromChangelog) -> str:
    return f"LogicalTableFunctionScan(invocation=[{_invocation(node)}], rowType=[{record_text(node.fields)}])"


modifications.register(p.ToChangelog, only_inserts)
satisfied.register(p.ToChangelog, needs_both)
arrival_of.register(p.ToChangelog, as_inputs)
incidental(p.ToChangelog, "call")

modifications.register(p.FromChangelog, all_changes)
arrival_of.register(p.FromChangelog, as_inputs)
incidental(p.FromChangelog, "call")


@satisfied.register
def _(node: p.FromChangelog, update_form: Updates) -> p.PhysicalNode | None:
    """Its rows are changes by code: there is no key by which a +U alone could overwrite."""
    return None if update_form is Updates.AFTER else needs_both(node, update_form)


@node_name.register(p.ToChangelog)
@node_name.register(p.FromChangelog)
def _(node: p.PhysicalNode) -> str:
    return "ProcessTableFunction"


@attributes.register(p.ToChangelog)
@attributes.register(p.FromChangelog)
def _(node: p.ToChangelog | p.FromChangelog, form: Form) -> Attributes:
    return [
        ("invocation", f"[{_invocation(node)}]"),
        ("uid", f"[{node.call.uid or 'null'}]"),
        ("select", f"[{','.join(f.name for f in node.fields)}]"),
        ("rowType", f"[{record_text(node.fields)}]"),
    ]


def _invocation(node: n.ToChangelog | n.FromChangelog | p.ToChangelog | p.FromChangelog) -> str:
    name = "TO_CHANGELOG" if isinstance(node, n.ToChangelog | p.ToChangelog) else "FROM_CHANGELOG"
    call = node.call
    op = f"DESCRIPTOR(_UTF-16LE'{call.op}')" if call.op else _DEFAULT
    mapping = _DEFAULT if call.mapping is None else _NO_COLUMNS.text(call.mapping)
    uid = f"_UTF-16LE'{call.uid}'" if call.uid else _DEFAULT
    return f"{name}(TABLE(#0), {op}, {mapping}, {_DEFAULT}, {uid})"
