"""The same aggregation in plain Spark Structured Streaming: ``PATH REPEAT``; prints seconds as JSON.

Update mode into a sink that only counts, everything there is in one trigger, RocksDB state.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.runtime.spark.session import spark_application


def main() -> None:
    path, repeat = sys.argv[1], int(sys.argv[2])
    spark = spark_application({})
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    seconds = []
    for _ in range(repeat):
        begun = time.perf_counter()
        rows = spark.readStream.schema("k BIGINT, v BIGINT, w DOUBLE").csv(path + "*")
        totals = rows.groupBy("k").agg(F.count("*").alias("c"), F.sum("v").alias("s"), F.max("w").alias("m"))
        with tempfile.TemporaryDirectory() as checkpoint:
            query = (
                totals.writeStream.outputMode("update")
                .foreachBatch(_count)
                .option("checkpointLocation", checkpoint)
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
        seconds.append(round(time.perf_counter() - begun, 3))
    print(json.dumps(seconds))


def _count(frame: DataFrame, epoch: int) -> None:
    frame.write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    main()
