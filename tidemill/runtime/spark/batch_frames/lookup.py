"""Lookup joins in batch: the stage of streaming, over the whole input."""

from __future__ import annotations

import uuid

from pyspark.sql import DataFrame

from tidemill.connectors.arrow_maps import map_batches
from tidemill.files.fence import Fence
from tidemill.physical.batch.nodes import LookupJoin
from tidemill.plan.nodes import JoinKind
from tidemill.runtime.compile.lookup_join import FOUND, Asked, asking, chosen_rows
from tidemill.runtime.spark.expressions import Translator
from tidemill.runtime.spark.lookup_stage import LookupStage
from tidemill.types.logical import BIGINT, ArrayType, Field, RowType
from tidemill.types.physical import quote, spark_schema


def lookup_frame(node: LookupJoin, left: DataFrame, zone: str, fence: Fence) -> DataFrame:
    lookup, width = node.lookup, len(node.input.fields)
    own = tuple(f"c{i}" for i in range(width))
    translator = Translator(columns=own, zone=zone)
    keys = [f"{translator.sql(key)} AS k{i}" for i, (key, _) in enumerate(lookup.keys)]
    found = tuple(Field(f"r{i}", f.type.with_nullable(True)) for i, f in enumerate(node.fields[width:]))
    stage = LookupStage(
        asking=asking(
            Asked(
                table=lookup.table,
                options=lookup.options,
                fields=tuple(Field(c, f.type) for c, f in zip(lookup.columns, found, strict=True)),
                keys=tuple(lookup.columns[column] for _, column in lookup.keys),
                retry=lookup.retry,
                zone=zone,
                fence=fence,
            )
        ),
        keys=tuple(width + i for i in range(len(keys))),
        outer=False,
        nested=True,
        width=width + len(keys),
        name="lookup",
        scope=uuid.uuid4().hex,
    )
    computed = tuple(Field(f"k{i}", key.type) for i, (key, _) in enumerate(lookup.keys))
    fields = tuple(Field(name, f.type) for name, f in zip(own, node.input.fields, strict=True))
    listed = (Field(FOUND, ArrayType(element=RowType(fields=found))), Field("row", BIGINT))
    schema = spark_schema((*fields, *computed, *listed))
    joined = map_batches(left.toDF(*own).selectExpr(*map(quote, own), *keys), stage, schema)
    rows = chosen_rows(quote(FOUND), found, lookup.condition, translator)
    inline = "inline_outer" if node.kind is JoinKind.LEFT else "inline"
    return joined.selectExpr(*map(quote, own), f"{inline}({rows})").toDF(*(f.name for f in node.fields))
