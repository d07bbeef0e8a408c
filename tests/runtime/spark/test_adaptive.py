"""Flink's options of batch jobs as Spark's."""

from __future__ import annotations

import pytest

from tidemill.config.option import Configuration
from tidemill.runtime.spark.adaptive import batch_settings
from tidemill.runtime.spark.settings import WIDTH
from tidemill.runtime.spark.speculation import speculation

AUTO = "execution.batch.adaptive.auto-parallelism"
SPARK = "spark.sql.adaptive"


@pytest.mark.parametrize(
    ("options", "volume", "width"),
    [
        ({}, 100 << 20, "2"),
        ({}, 1 << 30, "16"),
        ({f"{AUTO}.avg-data-volume-per-task": "16 mb"}, 100 << 20, "7"),
        ({}, 1 << 10, "2"),
        ({}, 1 << 40, "128"),
        ({}, None, "128"),
        ({f"{AUTO}.max-parallelism": "5"}, 1 << 40, "5"),
        ({f"{AUTO}.avg-data-volume-per-task": "1 mb"}, 100 << 20, "100"),
        ({"parallelism.default": "2"}, 1 << 40, "2"),
        ({"parallelism.default": "2", f"{AUTO}.max-parallelism": "9"}, 1 << 40, "9"),
        ({f"{AUTO}.enabled": "false"}, 1 << 40, "2"),
    ],
)
def test_how_wide_exchanges_begin(options: dict[str, str], volume: int | None, width: str) -> None:
    settings = batch_settings(Configuration(options), 2, volume)
    assert settings[WIDTH] == width
    assert (settings[f"{SPARK}.coalescePartitions.enabled"] == "false") == (f"{AUTO}.enabled" in options)


@pytest.mark.parametrize(
    ("strategy", "before", "during"),
    [("AUTO", "1000", "1000"), ("RUNTIME_ONLY", "-1", "1000"), ("NONE", "1000", "-1")],
)
def test_when_a_broadcast_is_chosen(strategy: str, before: str, during: str) -> None:
    options = {
        "table.optimizer.adaptive-broadcast-join.strategy": strategy,
        "table.optimizer.join.broadcast-threshold": "1000",
    }
    settings = batch_settings(Configuration(options), 2, None)
    assert settings["spark.sql.autoBroadcastJoinThreshold"] == before
    assert settings[f"{SPARK}.autoBroadcastJoinThreshold"] == during


def test_skew_and_dynamic_filtering() -> None:
    skew = "table.optimizer.skewed-join-optimization"
    options = {
        f"{skew}.strategy": "forced",
        f"{skew}.skewed-factor": "2.5",
        f"{skew}.skewed-threshold": "1 mb",
        "table.optimizer.dynamic-filtering.enabled": "false",
    }
    settings = batch_settings(Configuration(options), 2, None)
    assert settings[f"{SPARK}.skewJoin.enabled"] == settings[f"{SPARK}.forceOptimizeSkewedJoin"] == "true"
    assert settings[f"{SPARK}.skewJoin.skewedPartitionFactor"] == "2.5"
    assert settings[f"{SPARK}.skewJoin.skewedPartitionThresholdInBytes"] == str(1 << 20)
    assert settings["spark.sql.optimizer.dynamicPartitionPruning.enabled"] == "false"
    assert "spark.sql.optimizer.runtime.bloomFilter.enabled" not in settings


def test_speculation() -> None:
    assert speculation({}) == {}
    found = speculation(
        {"execution.batch.speculative.enabled": "true", "slow-task-detector.check-interval": "200 ms"}
    )
    assert found["spark.speculation"] == "true"
    assert found["spark.speculation.interval"] == "200ms"
    assert found["spark.speculation.minTaskRuntime"] == "60000ms"
    assert found["spark.speculation.quantile"] == "0.75"
    assert found["spark.executor.heartbeatInterval"] == "10000ms"
    quick = {"slow-task-detector.execution-time.baseline-lower-bound": "1 s"}
    found = speculation({"execution.batch.speculative.enabled": "true", **quick})
    # The rate of a task must be known by when it may be slow.
    assert found["spark.executor.heartbeatInterval"] == "500ms"
