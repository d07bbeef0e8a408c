"""ChangelogNormalize -> its kernel."""

from __future__ import annotations

from tidemill.changelog.rowkind import RowKind
from tidemill.operators.changelog_normalize import ChangelogNormalizeSpec
from tidemill.physical import nodes as p
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.keyed import PASSES_COLUMN, input_of, keyed
from tidemill.runtime.compile.row_names import named_rows
from tidemill.runtime.compile.schemas import columns_of
from tidemill.runtime.compile.shared import build
from tidemill.types.physical import quote


@build.register
def _(node: p.ChangelogNormalize, context: CompileContext, sequenced: bool) -> g.ExecNode:
    rows = named_rows(context.state, "changelog-normalize", node, node.input)
    spec = ChangelogNormalizeSpec(
        columns=columns_of(rows.fields[0]),
        keys=rows.keys(node.keys),
        passes="" if node.condition is None else PASSES_COLUMN,
        emit_update_before=RowKind.UPDATE_BEFORE in node.traits.kinds,
        per_record=context.per_event or node.versions or context.digests.of(node) in context.told,
        sequence=sequenced,
        timed=node.versions,
        state_ttl=node.state_ttl,
    )
    below = input_of(node, context, node.versions)
    if node.condition is not None:
        below = _judged(below, context.translator(node.input).sql(node.condition))
    kind, keys, timed = "changelog-normalize", spec.keys, node.versions
    return keyed(node, spec, kind, keys, context, sequenced, rows=rows, below=below, timed=timed)


def _judged(below: g.ExecNode, condition: str) -> g.Select:
    """``below`` and whether each row passes."""
    return g.Select(
        columns=(*below.columns, PASSES_COLUMN),
        kinds=below.kinds,
        sequenced=below.sequenced,
        input=below,
        expressions=(*map(quote, below.columns), f"COALESCE({condition}, FALSE)"),
        references=(*below.columns, None),
    )
