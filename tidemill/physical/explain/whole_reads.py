"""Sources without projection pushdown, as EXPLAIN shows them: a Calc above the scan picks the columns.

Tidemill's sources only make the needed columns, but these sources of Flink make all of them. So Flink's plans
have the Calc, and EXPLAIN shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tidemill.physical import nodes as p
from tidemill.physical.tree import visible
from tidemill.plan.expressions import InputRef
from tidemill.plan.rewrite import replace_inputs
from tidemill.types.logical import Field

_WHOLE = frozenset({"datagen"})


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """The plan that EXPLAIN shows. The same node always gives the same object."""

    _inputs: dict[int, tuple[p.PhysicalNode, tuple[p.PhysicalNode, ...]]] = field(default_factory=dict)

    def root(self, plan: p.PhysicalNode) -> p.PhysicalNode:
        return _whole(plan, chooses=False)

    def inputs(self, node: p.PhysicalNode) -> tuple[p.PhysicalNode, ...]:
        cached = self._inputs.get(id(node))
        if cached is None:
            chooses = isinstance(node, p.Calc)
            below = tuple(_whole(visible(i), chooses=chooses) for i in node.inputs)
            cached = self._inputs[id(node)] = (node, below)
        return cached[1]


def _whole(node: p.PhysicalNode, *, chooses: bool) -> p.PhysicalNode:
    """``node`` with all columns of such sources. ``chooses``: whether the node above picks columns."""
    whole = _scan(node) if isinstance(node, p.TableSourceScan) else _assigner(node)
    if whole is None:
        return node
    return whole if chooses or whole.fields == node.fields else _choice(whole, node.fields)


def _scan(node: p.TableSourceScan) -> p.TableSourceScan | None:
    if not (node.projected or node.filters) or dict(node.options).get("connector") not in _WHOLE:
        return None
    columns = node.table.physical_columns
    fields = tuple(Field(c.name, c.type) for c in columns)
    names = tuple(c.name for c in columns)
    return replace(node, fields=fields, columns=names, filters=(), projected=False)


def _assigner(node: p.PhysicalNode) -> p.PhysicalNode | None:
    """Columns are picked above the watermark, unless there are computed columns, which are made below it."""
    below = visible(node.input) if isinstance(node, p.WatermarkAssigner) else None
    if not isinstance(node, p.WatermarkAssigner) or not isinstance(below, p.TableSourceScan):
        return None
    whole = _scan(below)
    if whole is None or len(below.table.columns) != len(below.table.physical_columns):
        return None
    names, fields_by_name = [f.name for f in whole.fields], {f.name: f for f in node.fields}
    fields = tuple(fields_by_name.get(f.name, f) for f in whole.fields)

    def in_whole(index: int) -> InputRef:
        place = names.index(below.fields[index].name)
        return InputRef(type=fields[place].type, index=place)

    return replace(
        node,
        fields=fields,
        input=whole,
        rowtime=names.index(node.fields[node.rowtime].name),
        watermark=replace_inputs(node.watermark, in_whole),
    )


def _choice(whole: p.PhysicalNode, fields: tuple[Field, ...]) -> p.Calc:
    names = [f.name for f in whole.fields]
    columns = tuple(InputRef(type=f.type, index=names.index(f.name)) for f in fields)
    return p.Calc(fields=fields, traits=whole.traits, input=whole, projections=columns)
