"""Lookup joins in batch: the stage of streaming, over the whole input."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.physical.batch.nodes import LookupJoin
from tidemill.plan.nodes import JoinKind
from tidemill.runtime.compile.lookup_join import lookup_table
from tidemill.runtime.spark.expressions import Translator
from tidemill.runtime.spark.lookup_stage import LookupStage
from tidemill.types.logical import Field
from tidemill.types.physical import quote, spark_schema


def lookup_frame(node: LookupJoin, left: DataFrame, zone: str) -> DataFrame:
    lookup, width = node.lookup, len(node.source.fields)
    own = tuple(f"c{i}" for i in range(width))
    translator = Translator(columns=own, zone=zone)
    keys = [f"{translator.sql(key)} AS k{i}" for i, (key, _) in enumerate(lookup.keys)]
    asked = tuple(lookup.columns[column] for _, column in lookup.keys)
    fields = node.fields[width:]
    stage = LookupStage(
        table=lookup_table(lookup.table, lookup.options, lookup.columns, fields, asked),
        keys=tuple((width + i, name) for i, name in enumerate(asked)),
        outer=node.kind is JoinKind.LEFT,
        width=width + len(keys),
        name="lookup",
    )
    computed = tuple(Field(f"k{i}", key.type) for i, (key, _) in enumerate(lookup.keys))
    names = (*own, *(f.name for f in computed), *(f"r{i}" for i in range(len(fields))))
    typed = (*node.source.fields, *computed, *fields)
    schema = spark_schema(tuple(Field(name, f.type) for name, f in zip(names, typed, strict=True)))
    joined = left.toDF(*own).selectExpr(*map(quote, own), *keys).mapInArrow(stage, schema)
    shown = (*own, *names[width + len(keys) :])
    if lookup.condition is not None:
        joined = joined.where(F.expr(Translator(columns=shown, zone=zone).sql(lookup.condition)))
    return joined.select(*shown).toDF(*(f.name for f in node.fields))
