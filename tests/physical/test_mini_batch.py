"""Options of mini-batch, and how intervals combine."""

from __future__ import annotations

import pytest

from tests.physical.builders import CLICKS, aggregate, call, plan, scan
from tidemill.config.option import Configuration
from tidemill.errors import ValidationError
from tidemill.physical import nodes as p
from tidemill.physical.traits.mini_batch import Interval, MiniBatchConfig, Mode, mini_batch_config
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


def test_row_time_wins_and_keeps_the_latency() -> None:
    proc, watermarks = Interval(Mode.PROC_TIME, 2000), Interval(Mode.ROW_TIME, 0)
    assert proc.merge(watermarks) == watermarks.merge(proc) == Interval(Mode.ROW_TIME, 2000)


def test_row_time_intervals_meet_at_their_greatest_common_divisor() -> None:
    merged = Interval(Mode.ROW_TIME, 6000).merge(Interval(Mode.ROW_TIME, 4000))
    assert merged == Interval(Mode.ROW_TIME, 2000)


def test_core_skips_the_phases() -> None:
    root = aggregate(scan(CLICKS, "usr", "n"), (0,), call("SUM", 1, name="s"))
    node = plan(root, mini_batch=MiniBatchConfig(latency=2000, size=None))
    assert [type(x).__name__ for x in walk(node)] == [
        "GlobalGroupAggregate",
        "Exchange",
        "LocalGroupAggregate",
        "MiniBatchAssigner",
        "TableSourceScan",
    ]
    assert isinstance(node, p.GlobalGroupAggregate)
    assert node.core is not None
    assert isinstance(node.core.input, p.MiniBatchAssigner)
    assert node.core.calls == root.calls
    assert node.select == ("usr", "SUM(sum$0) AS s")
