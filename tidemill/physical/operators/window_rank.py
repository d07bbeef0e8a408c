"""WindowRank: Top-N and deduplication of the rows of a window, emitted at its end."""

from __future__ import annotations

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.physical import nodes as p
from tidemill.physical.digests import canonical
from tidemill.physical.explain.attributes.dispatch import attributes, execution_name, node_name
from tidemill.physical.explain.attributes.texts import (
    Attributes,
    attached,
    emit_attributes,
    names,
    order_by,
)
from tidemill.physical.explain.notes import runs_otherwise
from tidemill.physical.explain.printer import Form, Printer
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage, unordered_columns
from tidemill.physical.operators.rank import corrected, rank_lineage
from tidemill.physical.operators.windows import attached_columns
from tidemill.physical.running import reads_each_change, running
from tidemill.physical.traits.arrival import arrival_of, by_event_time
from tidemill.physical.traits.changelog_mode import (
    INSERT_DELETE,
    Kinds,
    modifications,
    needs_both,
    satisfied,
)
from tidemill.physical.traits.event_time import passes_if_timed, passes_watermarks
from tidemill.physical.traits.mini_batch import always, awaited_windows, needs_watermark
from tidemill.physical.traits.monotonicity import first_rows


@modifications.register
def _(node: p.WindowRank) -> Kinds:
    """With early or late results rows are deleted and inserted."""
    return INSERT_ONLY if node.emit is None else INSERT_DELETE


satisfied.register(p.WindowRank, needs_both)
arrival_of.register(p.WindowRank, by_event_time)
passes_watermarks.register(p.WindowRank, passes_if_timed)
reads_each_change.register(p.WindowRank, always)


@first_rows.register
def _(node: p.WindowRank) -> None:
    """It has all rows of a window before it emits the first."""


@needs_watermark.register
def _(node: p.WindowRank) -> bool:
    return not node.attached.window.proctime


@awaited_windows.register
def _(node: p.WindowRank) -> tuple[p.Window, ...]:
    return (node.attached.window,)


@running.register
def _(node: p.WindowRank) -> p.PhysicalNode:
    """It waits for the watermark, as in Flink."""
    return node


@lineage_of.register
def _(node: p.WindowRank, lineages: Lineages) -> Lineage:
    below = lineages.of(node.input)
    window = attached_columns(node.attached, below)
    return rank_lineage(node, below, *window, canonical(node.emit), *unordered_columns(node.keys, below))


@node_name.register
def _(node: p.WindowRank) -> str:
    return "WindowDeduplicate" if node.is_deduplicate else "WindowRank"


execution_name.register(p.WindowRank, node_name)


@attributes.register
def _(node: p.WindowRank, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields)
    window = ("window", f"[{attached(node.attached, node.input)}]")
    if node.is_deduplicate:
        return [
            window,
            ("keep", "[FirstRow]" if node.keeps_first else "[LastRow]"),
            ("partitionKeys", f"[{printer.columns(node.keys)}]"),
            ("orderKey", f"[{printer.column(node.order[0].index)}]"),
            ("order", f"[{node.time}]"),
            *emit_attributes(node.emit),
        ]
    return [
        window,
        *emit_attributes(node.emit),
        ("rankType", f"[{node.function}]"),
        ("rankRange", f"[rankStart={node.start}, rankEnd={node.end}]"),
        ("partitionBy", f"[{printer.columns(node.keys)}]"),
        ("orderBy", order_by(node.order, node.input)),
        ("select", f"[{names(node)}]"),
    ]


@runs_otherwise.register
def _(shown: p.WindowRank, runs: p.PhysicalNode) -> list[str]:
    assert isinstance(runs, p.Rank)
    return corrected(shown, runs)
