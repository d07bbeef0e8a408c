"""Rows that come several times with other columns each time, as GROUPING SETS need them: Spark's UNPIVOT.

Spark plans that as the Expand which it makes of its own GROUPING SETS. A generator over structs gives the
same rows, and makes an object of each: for a ROLLUP over millions that was half of the query.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.physical.nodes import Expand
from tidemill.plan.expressions import InputRef, Literal
from tidemill.runtime.spark.batch_frames.relation import Relation, aliased
from tidemill.runtime.spark.expressions import Translator
from tidemill.types.physical import quote


def unpivoted(node: Expand, below: Relation, translator: Translator, sequenced: bool) -> Relation | None:
    """The node's fields, and ``$seq`` behind them; None where a projection computes or all are the same."""
    columns = list(zip(*node.projections, strict=True))
    if not all(isinstance(e, InputRef | Literal) for values in columns for e in values):
        return None
    texts = [[translator.sql(e) for e in values] for values in columns]
    names = [f.name for f in node.fields]
    varying = {name: found for name, found in zip(names, texts, strict=True) if len(set(found)) > 1}
    if not varying:
        return None
    # What sets put into a column, each under a name: UNPIVOT takes names only, and passes on all others.
    distinct = dict.fromkeys(text for found in varying.values() for text in found)
    parts = {text: f"$part{i}" for i, text in enumerate(distinct)}
    fixed = {name: found[0] for name, found in zip(names, texts, strict=True) if name not in varying}
    hidden = [SEQUENCE_COLUMN] * sequenced
    wide = below.select(
        [*aliased([*fixed.values(), *parts], [*fixed, *parts.values()]), *map(quote, hidden)],
        (*fixed, *parts.values(), *hidden),
    )
    return _unpivot(wide, {n: [parts[t] for t in found] for n, found in varying.items()}, (*names, *hidden))


def _unpivot(wide: Relation, values: dict[str, list[str]], columns: tuple[str, ...]) -> Relation:
    """``columns``, of which ``values`` names those that have another source in each row."""
    sets = ", ".join(_tuple(each) for each in zip(*values.values(), strict=True))
    shown = ", ".join(map(quote, columns))
    return wide.around(
        f"SELECT {shown} FROM {wide.item} UNPIVOT INCLUDE NULLS ({_tuple(values)} FOR `$set` IN ({sets}))",
        columns,
    )


def _tuple(names: Iterable[str]) -> str:
    """Of one column UNPIVOT takes no parentheses."""
    quoted = [quote(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"({', '.join(quoted)})"
