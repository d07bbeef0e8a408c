"""Temporal joins in batch: one window by key and time over the rows of both sides.

Left rows look back at the versions of their key: the last one before them, in the order of time and of
arrival, is theirs. Cost: one exchange and one sort of both sides.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.functions.casts_datetime import EPOCH, micros_between
from tidemill.functions.values import marked
from tidemill.physical.batch.nodes import TemporalJoin
from tidemill.plan.nodes import JoinKind
from tidemill.runtime.spark.batch_frames.over import sort_texts
from tidemill.runtime.spark.expressions import Translator
from tidemill.types.logical import Field, LocalZonedTimestampType
from tidemill.types.physical import quote

_TIME, _SIDE, _ROW, _VERSION = "$time", "$side", "$row", "$version"
_REACHED, _PLACE, _NONE = "$reached", "$place", 2**31 - 1


def temporal_frame(node: TemporalJoin, left: DataFrame, right: DataFrame, zone: str) -> DataFrame:
    """``right`` comes with ``$seq``; the result has the node's fields."""
    sides = [len(source.fields) for source in node.inputs]
    l_names, r_names = tuple(f"l{i}" for i in range(sides[0])), tuple(f"r{i}" for i in range(sides[1]))
    left, right = left.toDF(*l_names), right.toDF(*r_names, SEQUENCE_COLUMN)
    keys = [f"$k{i}" for i in range(len(node.keys))]
    rows = left.select(
        *_keyed(node, 0, Translator(columns=l_names, zone=zone)),
        F.col(l_names[node.left_time]).alias(_TIME),
        F.lit(1).alias(_SIDE),
        F.lit(0).cast("bigint").alias(SEQUENCE_COLUMN),
        F.struct(*l_names).alias(_ROW),
    )
    versions = right.select(
        *_keyed(node, 1, Translator(columns=r_names, zone=zone)),
        F.col(r_names[node.right_time]).alias(_TIME),
        F.lit(0).alias(_SIDE),
        _arrival(node).alias(SEQUENCE_COLUMN),
        F.struct(*r_names).alias(_VERSION),
        *(F.col(r_names[i]) for i in _ordering(node)),
    )
    for key, (_, _, null_safe) in zip(keys, node.keys, strict=True):
        versions = versions if null_safe else versions.where(F.col(quote(key)).isNotNull())
    versions = _chosen(node, versions, keys, r_names).drop(*(r_names[i] for i in _ordering(node)))
    both = versions.unionByName(rows, allowMissingColumns=True)
    found = both.withColumn(_VERSION, F.last(_VERSION, ignorenulls=True).over(_before(keys)))
    found = found.where(F.col(_SIDE) == 1)
    if node.alive:
        found = found.withColumn(
            _VERSION, F.when(F.col(f"{quote(_VERSION)}.{r_names[-1]}"), F.col(quote(_VERSION)))
        )
    return _judged(node, found, (l_names, r_names), zone)


def _keyed(node: TemporalJoin, side: int, translator: Translator) -> list[Column]:
    """The keys of one side in a form in which what is identical is one."""
    keys = [sides[side] for *sides, _ in node.keys]
    return [F.expr(marked(translator.sql(key), key.type)).alias(f"$k{i}") for i, key in enumerate(keys)]


def _keys(names: list[str]) -> list[Column]:
    return [F.col(quote(name)) for name in names]


def _before(keys: list[str]) -> WindowSpec:
    order = (F.col(quote(_TIME)), F.col(quote(_SIDE)), F.col(quote(SEQUENCE_COLUMN)))
    by_time = Window.partitionBy(*_keys(keys)).orderBy(*order)
    return by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)


def _arrival(node: TemporalJoin) -> Column:
    if node.arrives:
        return F.col(quote(SEQUENCE_COLUMN))
    zoned = isinstance(node.right.fields[node.right_time].type, LocalZonedTimestampType)
    time = f"r{node.right_time}"
    return F.expr(f"unix_micros({time})" if zoned else micros_between(EPOCH, time))


def _ordering(node: TemporalJoin) -> list[int]:
    """The columns of the versions that say which of them are some."""
    return [] if node.latest else list(dict.fromkeys(key.index for key in node.order))


def _chosen(node: TemporalJoin, versions: DataFrame, keys: list[str], names: tuple[str, ...]) -> DataFrame:
    """Those that were the first by the node's order when they came."""
    if not node.order:
        return versions
    arrival = Window.partitionBy(*_keys(keys)).orderBy(F.col(quote(SEQUENCE_COLUMN)))
    upto = arrival.rowsBetween(Window.unboundedPreceding, 0)
    if node.latest:
        reached = F.max(F.col(quote(_TIME))).over(upto)
        return versions.withColumn(_REACHED, reached).where(f"`{_TIME}` >= `{_REACHED}`").drop(_REACHED)
    fields = tuple(Field(name, f.type) for name, f in zip(names, node.right.fields, strict=True))
    order = ", ".join(text for key in node.order for text in sort_texts(key, fields))
    by = ", ".join(map(quote, keys))
    ranked = versions.withColumn(_PLACE, F.expr(f"DENSE_RANK() OVER (PARTITION BY {by} ORDER BY {order})"))
    before = arrival.rowsBetween(Window.unboundedPreceding, -1)
    best = F.coalesce(F.min(_PLACE).over(before), F.lit(_NONE))
    improved = F.col(quote(_PLACE)) <= best if node.later else F.col(quote(_PLACE)) < best
    return ranked.withColumn(_REACHED, improved).where(quote(_REACHED)).drop(_PLACE, _REACHED)


def _judged(
    node: TemporalJoin, found: DataFrame, names: tuple[tuple[str, ...], tuple[str, ...]], zone: str
) -> DataFrame:
    """The row and what of its version passes the further condition."""
    l_names, r_names = names
    shown = r_names[: len(node.fields) - len(l_names)]
    flat = found.select(
        *(F.col(f"{quote(_ROW)}.{name}").alias(name) for name in l_names),
        *(F.col(f"{quote(_VERSION)}.{name}").alias(name) for name in r_names),
        F.col(quote(_VERSION)).isNotNull().alias(_VERSION),
    )
    matched = F.col(quote(_VERSION))
    if node.condition is not None:
        condition = Translator(columns=(*l_names, *r_names), zone=zone).sql(node.condition)
        matched = matched & F.coalesce(F.expr(condition), F.lit(False))
    if node.kind is JoinKind.INNER:
        chosen = flat.where(matched).select(*l_names, *shown)
    else:
        chosen = flat.select(*l_names, *(F.when(matched, F.col(name)).alias(name) for name in shown))
    return chosen.toDF(*(f.name for f in node.fields))
