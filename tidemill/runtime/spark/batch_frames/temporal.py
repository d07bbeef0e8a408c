"""Temporal joins in batch: one window by key and time over the rows of both sides.

Left rows look back at the versions of their key: the last one before them, in the order of time and of
arrival, is theirs. Cost: one exchange and one sort of both sides.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.functions.values import marked, matching
from tidemill.physical.batch.nodes import TemporalJoin
from tidemill.plan.nodes import JoinKind
from tidemill.runtime.spark.expressions import Translator
from tidemill.types.logical import APPROXIMATE_TYPES
from tidemill.types.physical import quote

_TIME, _SIDE, _ROW, _VERSION = "$time", "$side", "$row", "$version"


def temporal_frame(node: TemporalJoin, left: DataFrame, right: DataFrame, zone: str) -> DataFrame:
    """``right`` comes with ``$seq``; the result has the node's fields."""
    sides = [len(source.fields) for source in node.sources]
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
        F.col(quote(SEQUENCE_COLUMN)).alias(SEQUENCE_COLUMN),
        F.struct(*r_names).alias(_VERSION),
    )
    for key, (_, _, null_safe) in zip(keys, node.keys, strict=True):
        versions = versions if null_safe else versions.where(F.col(quote(key)).isNotNull())
    versions = _latest(versions, keys) if node.latest else versions
    both = versions.unionByName(rows, allowMissingColumns=True)
    found = both.withColumn(_VERSION, F.last(_VERSION, ignorenulls=True).over(_before(keys)))
    found = found.where(F.col(_SIDE) == 1)
    if node.alive:
        found = found.withColumn(
            _VERSION, F.when(F.col(f"{quote(_VERSION)}.{r_names[-1]}"), F.col(quote(_VERSION)))
        )
    return _judged(node, found, (l_names, r_names), zone)


def _keyed(node: TemporalJoin, side: int, translator: Translator) -> list[Column]:
    """The keys of one side in a form in which what is equal is one."""
    found = []
    for i, (*sides, null_safe) in enumerate(node.keys):
        key = sides[side]
        form = matching if isinstance(key.type, APPROXIMATE_TYPES) and not null_safe else marked
        found.append(F.expr(form(translator.sql(key), key.type)).alias(f"$k{i}"))
    return found


def _keys(names: list[str]) -> list[Column]:
    return [F.col(quote(name)) for name in names]


def _before(keys: list[str]) -> WindowSpec:
    order = (F.col(quote(_TIME)), F.col(quote(_SIDE)), F.col(quote(SEQUENCE_COLUMN)))
    by_time = Window.partitionBy(*_keys(keys)).orderBy(*order)
    return by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)


def _latest(versions: DataFrame, keys: list[str]) -> DataFrame:
    """Without those that are older than one of their key that came before."""
    arrival = Window.partitionBy(*_keys(keys)).orderBy(F.col(quote(SEQUENCE_COLUMN)))
    reached = F.max(F.col(quote(_TIME))).over(arrival.rowsBetween(Window.unboundedPreceding, 0))
    return versions.withColumn("$reached", reached).where("`$time` >= `$reached`").drop("$reached")


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
