"""Aggregates in batch: the functions' own Spark translations, FILTER, DISTINCT and order included."""

from __future__ import annotations

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.errors import NotSupportedError
from tidemill.functions.api import SparkAggregateCall
from tidemill.functions.values import marked, unmarked
from tidemill.physical.batch.arrival import function_of, needs_order
from tidemill.physical.batch.nodes import Aggregate
from tidemill.plan.expressions import AggregateCall
from tidemill.runtime.spark.batch_frames.relation import Relation, aliased
from tidemill.types.logical import Field
from tidemill.types.physical import quote
from tidemill.types.values import has_floats


def aggregated(node: Aggregate, below: Relation, zone: str, quick: bool) -> Relation:
    """``below`` (with ``$seq`` where needs_order) grouped; the columns are the node's fields."""
    inputs, names = node.input.fields, tuple(f.name for f in node.fields)
    keys = [inputs[k] for k in node.keys]
    calls = _calls(node, zone, quick)
    floats = any(has_floats(k.type) for k in keys)
    columns = [quote(k.name) for k in keys]
    if floats:
        hidden = tuple(f"$key{i}" for i in range(len(keys)))
        texts = [f"{marked(quote(k.name), k.type)} AS {quote(h)}" for k, h in zip(keys, hidden, strict=True)]
        below, columns = below.with_columns(texts, hidden), list(map(quote, hidden))
    grouped = aliased(columns, names[: len(keys)])
    rest = f"GROUP BY {', '.join(columns)}" if columns else ""
    # Without keys there is one row, though nothing may be asked of it.
    made = below.select([*grouped, *calls] or [f"count(1) AS {quote('$rows')}"], names, rest)
    return _shown(node, keys, made) if floats else made


def _shown(node: Aggregate, keys: list[Field], made: Relation) -> Relation:
    """Keys as the values that they are."""
    names = [quote(f.name) for f in node.fields]
    texts = [f"{unmarked(name, k.type)} AS {name}" for name, k in zip(names, keys, strict=False)]
    return made.select([*texts, *names[len(keys) :]], made.columns)


def _calls(node: Aggregate, zone: str, quick: bool) -> list[str]:
    fields = node.fields[len(node.keys) :]
    inputs, ordered = node.input.fields, needs_order(node)
    return [
        f"{call_text(call, inputs, zone, ordered=ordered, quick=quick)} AS {quote(f.name)}"
        for call, f in zip(node.calls, fields, strict=True)
    ]


def call_text(
    call: AggregateCall, inputs: tuple[Field, ...], zone: str, *, ordered: bool = False, quick: bool = False
) -> str:
    """``call`` over columns of the names of ``inputs``; ``ordered``: there is ``$seq``, too."""
    function = function_of(call)
    if function.spark is None:
        raise NotSupportedError(f"{call.function} in batch mode is not supported")
    return function.spark(
        SparkAggregateCall(
            args=tuple(quote(inputs[a].name) for a in call.args),
            arg_types=tuple(inputs[a].type for a in call.args),
            literals=(None,) * len(call.args),
            result=call.type,
            options=dict(call.options),
            zone=zone,
            distinct=call.distinct,
            where="" if call.filter is None else quote(inputs[call.filter].name),
            sequence=quote(SEQUENCE_COLUMN) if ordered else "",
            quick=quick,
        )
    )
