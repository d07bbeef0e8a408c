"""Options of mini-batch, and which watermarks pass."""

from __future__ import annotations

import pytest

from tests.physical.builders import CLICKS, aggregate, call, plan, scan
from tests.session.environments import new_session
from tidemill.config.option import Configuration
from tidemill.errors import ValidationError
from tidemill.physical.explain.attributes import node_name
from tidemill.physical.traits.mini_batch import MiniBatchConfig, mini_batch_config
from tidemill.physical.tree import walk

ENABLED, LATENCY, SIZE = (f"table.exec.mini-batch.{x}" for x in ("enabled", "allow-latency", "size"))


def test_on_by_default_for_execution_only() -> None:
    assert mini_batch_config(Configuration(), explicit=False) == MiniBatchConfig(latency=0, size=None)
    assert mini_batch_config(Configuration(), explicit=True) is None


def test_off_where_the_user_says_so() -> None:
    assert mini_batch_config(Configuration({ENABLED: "false"}), explicit=False) is None


@pytest.mark.parametrize("size", ["0", "-1"])
def test_size_must_be_positive(size: str) -> None:
    with pytest.raises(ValidationError, match=r"'table\.exec\.mini-batch\.size'.*must be > 0"):
        mini_batch_config(Configuration({SIZE: size}), explicit=False)


@pytest.mark.parametrize(("key", "value"), [(LATENCY, "abc"), (SIZE, "many")])
def test_bad_value_names_its_key(key: str, value: str) -> None:
    with pytest.raises(ValidationError, match=rf"'{value}' for key '{key}'"):
        mini_batch_config(Configuration({key: value}), explicit=False)


WINDOWS = {
    "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND)": 5000,
    "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '4' SECOND)": 2000,
    "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '10' SECOND)": 2000,
    "CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '3' SECOND, INTERVAL '12' SECOND)": 3000,
    "DYNAMIC_CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '7' SECOND)": 4000,
    # Never above what is allowed.
    "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)": 15_000,
    "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MONTH)": 15_000,
    # Its windows end a gap after any row.
    "SESSION(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND)": 15_000,
}
FIVES = (
    "SELECT window_time AS ts FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND))"
    " GROUP BY window_start, window_end, window_time"
)
NESTED = {
    f"TUMBLE(({FIVES}), DESCRIPTOR(ts), INTERVAL '{size}' SECOND)": passes
    for size, passes in ((10, 5000), (8, 1000))
}


@pytest.mark.parametrize(("window", "passes"), (WINDOWS | NESTED).items())
def test_the_watermarks_that_windows_need_pass(window: str, passes: int) -> None:
    """Flink's plan keeps what is allowed; EXPLAIN says what passes as it runs."""
    session = new_session(**{ENABLED.replace(".", "__"): "true", LATENCY.replace(".", "__"): "15 s"})
    session.execute_sql(
        "CREATE TABLE t (n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen')"
    )
    query = f"SELECT window_end, COUNT(*) FROM TABLE({window}) GROUP BY window_start, window_end"
    text = session.explain_sql(query)
    shown = "MiniBatchAssigner(interval=[15000ms], mode=[RowTime]"
    runs = "" if passes == 15_000 else f", runs=[a watermark passes every {passes} ms]"
    assert f"{shown}{runs})" in text


def test_the_phases_are_shown_and_one_aggregation_runs() -> None:
    root = aggregate(scan(CLICKS, "usr", "n"), (0,), call("SUM", 1, name="s"))
    bundles = MiniBatchConfig(latency=2000, size=None)
    assert [node_name(x) for x in walk(plan(root, mini_batch=bundles))] == [
        "GlobalGroupAggregate",
        "Exchange",
        "LocalGroupAggregate",
        "MiniBatchAssigner",
        "TableSourceScan",
    ]
    assert [node_name(x) for x in walk(plan(root, mini_batch=bundles, executed=True))] == [
        "GroupAggregate",
        "Exchange",
        "MiniBatchAssigner",
        "TableSourceScan",
    ]
