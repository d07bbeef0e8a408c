"""WindowTableFunction and WindowsOfRows: rows with their windows."""

from __future__ import annotations

from tidemill.physical import nodes as p
from tidemill.physical.digests import canonical, hashed, joined
from tidemill.physical.explain.attributes.dispatch import attributes, node_name
from tidemill.physical.explain.attributes.texts import Attributes, window_text
from tidemill.physical.explain.printer import Form
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage, computed
from tidemill.physical.running import reads_each_change
from tidemill.physical.traits.arrival import arrival_of, as_inputs
from tidemill.physical.traits.changelog_mode import (
    kinds_of_inputs,
    modifications,
    needs_both,
    needs_same_form,
    only_inserts,
    satisfied,
)
from tidemill.physical.traits.event_time import passes_watermarks
from tidemill.physical.traits.mini_batch import (
    always,
    awaited_windows,
    folds,
    needs_watermark,
    waits_or_attaches,
)

modifications.register(p.WindowTableFunction, kinds_of_inputs)
satisfied.register(p.WindowTableFunction, needs_same_form)
arrival_of.register(p.WindowTableFunction, as_inputs)
passes_watermarks.register(p.WindowTableFunction, always)
folds.register(p.WindowTableFunction, always)

modifications.register(p.WindowsOfRows, only_inserts)
satisfied.register(p.WindowsOfRows, needs_both)
folds.register(p.WindowsOfRows, always)
reads_each_change.register(p.WindowsOfRows, always)


@waits_or_attaches.register
def _(node: p.WindowTableFunction) -> bool:
    return not node.window.proctime


@needs_watermark.register
def _(node: p.WindowsOfRows) -> bool:
    return not node.window.proctime


@awaited_windows.register(p.WindowTableFunction)
@awaited_windows.register(p.WindowsOfRows)
def _(node: p.WindowTableFunction | p.WindowsOfRows) -> tuple[p.Window, ...]:
    return (node.window,)


@lineage_of.register
def _(node: p.WindowTableFunction, lineages: Lineages) -> Lineage:
    below = lineages.of(node.input)
    by = [below.columns[c] for c in (node.time, *node.partition)]
    rows = hashed(joined("Windows", [below.rows, canonical(node.window), *by]))
    own = [f.name for f in node.fields[len(below.columns) :]]
    every = range(len(below.columns))
    return computed(below, every, rows, [str(i) for i in range(len(own))], own)


def attached_columns(attached: p.AttachedWindow, below: Lineage) -> list[str]:
    """A window that rows already carry, in the lineage of an operator by window."""
    return [canonical(attached.window), below.columns[attached.start], below.columns[attached.end]]


@node_name.register
def _(node: p.WindowsOfRows) -> str:
    return "WindowTableFunction"


@attributes.register(p.WindowTableFunction)
@attributes.register(p.WindowsOfRows)
def _(node: p.WindowTableFunction | p.WindowsOfRows, form: Form) -> Attributes:
    fields = node.input.fields
    partition = [fields[i].name for i in node.partition]
    return [("window", f"[{window_text(node.window, f'time_col=[{fields[node.time].name}]', partition)}]")]
