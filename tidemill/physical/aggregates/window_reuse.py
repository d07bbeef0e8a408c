"""COUNT(DISTINCT v) in windows by keys that have few known values: see ``distinct_reuse``.

The lower aggregation is by slice, the other keys and the value, with a bit per known key
(``operators.window.shared_values``). It gives a row per window, key and partition; for cumulating windows a
row per step, with the step's new values. The upper aggregation adds the rows up in the epoch in which windows
end. Its state is small compared to the values.

It does not apply to windows with early or late results, windows by processing time, input with retractions,
and jobs that keep late rows.
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.physical import nodes as p
from tidemill.physical.aggregates.distinct_reuse import with_width
from tidemill.physical.finish import exchange, finish
from tidemill.physical.names import free_name
from tidemill.physical.traits.changelog_mode import insert_only
from tidemill.physical.traits.event_time import has_watermark
from tidemill.types import logical as t

_BOUND = t.TimestampType(precision=3, nullable=False)


def share_distinct_of_windows(node: p.WindowAggregate) -> p.WindowAggregate:
    """Two aggregations for ``node`` if its keys share their state, otherwise ``node``."""
    plain = replace(node, reuse=None)
    if node.reuse is None or not _can_be_shared(node):
        return plain
    reuse = with_width(node.reuse, node.input.inputs[0], node.keys)
    return plain if reuse is None else _summed(plain, _distinct_values(plain, reuse))


def _can_be_shared(node: p.WindowAggregate) -> bool:
    window, below = node.window, node.input
    shows_more = node.emit is not None or window.proctime or window.kind.is_data_driven
    return not shows_more and isinstance(below, p.Exchange) and insert_only(below) and has_watermark(below)


def _gives_steps(node: p.WindowAggregate) -> bool:
    return node.window.kind.cumulates and not node.attached


def _distinct_values(node: p.WindowAggregate, reuse: p.DistinctReuse) -> p.WindowAggregate:
    """The number of values per key and window; for cumulating windows the new values per step."""
    (below,) = node.input.inputs
    keys = tuple(below.fields[key] for key in node.keys)
    used_names = [f.name for f in keys]
    steps = _gives_steps(node)
    time_field = t.Field(free_name("$window", used_names), below.fields[node.time].type if steps else _BOUND)
    number = replace(node.calls[0], name=free_name("$new", used_names), type=t.BigIntType(nullable=False))
    return finish(
        replace(
            node,
            fields=(*keys, t.Field(number.name, number.type), time_field),
            input=exchange(below, reuse.kept),
            calls=(number,),
            properties=("time" if steps else "end",),
            reuse=reuse,
        )
    )


def _summed(node: p.WindowAggregate, values: p.WindowAggregate) -> p.WindowAggregate:
    keys = tuple(range(len(node.keys)))
    return finish(
        replace(
            node,
            input=exchange(values, keys),
            keys=keys,
            calls=tuple(replace(c, function="$SUM0", args=(len(keys),), distinct=False) for c in node.calls),
            time=len(keys) + 1,
            attached=not _gives_steps(node),
        )
    )
