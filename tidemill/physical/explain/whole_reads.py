"""Sources that hand over all rows as a whole, as plans show them: a Calc above chooses among them.

These sources make the columns that are asked for and no others, but Flink's make all of them: its plans have
the Calc, and so have ours.
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
class Shown:
    """What is shown of a plan; a node is the same object however often it is asked for."""

    _inputs: dict[int, tuple[p.PhysicalNode, tuple[p.PhysicalNode, ...]]] = field(default_factory=dict)

    def root(self, plan: p.PhysicalNode) -> p.PhysicalNode:
        return _whole(plan, chooses=False)

    def inputs(self, node: p.PhysicalNode) -> tuple[p.PhysicalNode, ...]:
        known = self._inputs.get(id(node))
        if known is None:
            chooses = isinstance(node, p.Calc)
            below = tuple(_whole(visible(i), chooses=chooses) for i in node.inputs)
            known = self._inputs[id(node)] = (node, below)
        return known[1]


def _whole(node: p.PhysicalNode, *, chooses: bool) -> p.PhysicalNode:
    """``node`` as it stands below one that ``chooses`` among its columns, or does not."""
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
    """Columns are chosen above the watermark, unless there are computed ones, which are made below it."""
    below = visible(node.input) if isinstance(node, p.WatermarkAssigner) else None
    if not isinstance(node, p.WatermarkAssigner) or not isinstance(below, p.TableSourceScan):
        return None
    whole = _scan(below)
    if whole is None or len(below.table.columns) != len(below.table.physical_columns):
        return None
    names, known = [f.name for f in whole.fields], {f.name: f for f in node.fields}
    fields = tuple(known.get(f.name, f) for f in whole.fields)

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
