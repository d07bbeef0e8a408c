"""Options parse by kind, name key and value in errors, and are unique."""

from __future__ import annotations

import pkgutil
from collections import Counter
from importlib import import_module
from typing import Any

import pytest

from tidemill import config
from tidemill.config import registry, watermark_options
from tidemill.config.execution_options import CLAIM_MODE, PARALLELISM, RECOVERY_PATH, RUNTIME_MODE
from tidemill.config.option import (
    Configuration,
    Duration,
    MemorySize,
    Option,
    parse_duration,
    parse_memory,
    parse_number,
)
from tidemill.config.unknown_options import unknown_option
from tidemill.errors import NotSupportedError, ValidationError


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1 s", 1000),
        ("500ms", 500),
        ("2 min", 120_000),
        ("7", 7),
        ("3 HOURS", 10_800_000),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == Duration(milliseconds)


@pytest.mark.parametrize(("text", "size"), [("64 mb", 64 << 20), ("1gb", 1 << 30), ("10", 10), ("2k", 2048)])
def test_memory_sizes(text: str, size: int) -> None:
    assert parse_memory(text) == MemorySize(size)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("table.exec.mini-batch.size", "many"),
        ("table.exec.mini-batch.enabled", "yes"),
        ("table.exec.state.ttl", "soon"),
        ("execution.runtime-mode", "sideways"),
        ("tidemill.epoch.max-bytes", "-1 mb"),
        ("tidemill.epoch.max-rows", "-5"),
        ("table.display.max-column-width", "0"),
        ("table.optimizer.distinct-agg.split.bucket-num", "0"),
        ("table.optimizer.join.broadcast-threshold", "-2"),
        ("table.optimizer.join.broadcast-threshold", "9223372036854775808"),
        ("table.optimizer.join.broadcast-threshold", "1_0"),
        ("execution.batch.adaptive.auto-parallelism.min-parallelism", "2147483648"),
        ("slow-task-detector.execution-time.baseline-multiplier", "0.0"),
        ("slow-task-detector.execution-time.baseline-ratio", "1.01"),
        ("slow-task-detector.execution-time.baseline-ratio", "-0.1"),
        ("execution.batch.adaptive.auto-parallelism.max-parallelism", "\u0665"),
        ("execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task", "0"),
        ("execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task", "9999999999 tb"),
        ("table.optimizer.skewed-join-optimization.skewed-factor", "nan"),
        ("table.optimizer.skewed-join-optimization.skewed-factor", "-0.0"),
        ("table.optimizer.skewed-join-optimization.skewed-factor", "Infinity"),
        ("table.optimizer.skewed-join-optimization.skewed-factor", "-1.0"),
        ("table.optimizer.skewed-join-optimization.skewed-factor", "1_0.0"),
        ("table.optimizer.skewed-join-optimization.skewed-threshold", "0 b"),
    ],
)
def test_a_bad_value_names_key_and_value(key: str, value: str) -> None:
    with pytest.raises(ValidationError) as caught:
        registry.check_all(Configuration({"unknown.key": "x", key: value}))
    assert key in str(caught.value)
    assert value in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tidemill.epoch.max-rows", "-5"),
        ("tidemill.epoch.max-rows", "ten"),
        ("tidemill.epoch.max-bytes", "much"),
        ("tidemill.display.layout", "DIAGONAL"),
        ("execution.runtime-mode", "sideways"),
    ],
)
def test_set_refuses_a_bad_value_of_an_option_of_ours(key: str, value: str) -> None:
    with pytest.raises(ValidationError, match=f"'{value}' for key '{key}'"):
        registry.check_at_set(key, value)


def test_set_leaves_values_of_flinks_options_to_the_statement_that_reads_them() -> None:
    registry.check_at_set("table.exec.mini-batch.size", "many")


def test_set_refuses_a_dialect_that_nobody_knows() -> None:
    registry.check_at_set("table.sql-dialect", "Hive")
    with pytest.raises(ValidationError, match=r"No enum constant .*SqlDialect\.HIEV"):
        registry.check_at_set("table.sql-dialect", "hiev")


OWN_BESIDE = {"table.optimizer.distinct-state-reuse", "table.exec.arrow-expressions.enabled"}
"""Tidemill's own that stand beside Flink's of the same kind."""


def test_every_default_reads_back_and_every_key_is_declared_once() -> None:
    options: list[Option[Any]] = [o for area in registry.AREAS for o in area.options]
    assert [k for k, n in Counter(key for o in options for key in o.keys).items() if n > 1] == []
    for option in options:
        assert isinstance(option.default, option.kind), option.key
        assert option.doc.strip(), option.key
        assert option.own == (option.key.startswith("tidemill.") or option.key in OWN_BESIDE), option.key


def test_every_declared_option_is_in_an_area() -> None:
    modules = [import_module(f"tidemill.config.{m.name}") for m in pkgutil.iter_modules(config.__path__)]
    declared = {key for m in modules for o in vars(m).values() if isinstance(o, Option) for key in o.keys}
    of_tables = {o.key for o in watermark_options.OF_TABLES}
    assert declared - of_tables == set(registry.BY_KEY)
    assert of_tables < declared


def test_a_key_that_flink_had_before_is_read_where_the_new_one_is_not_set() -> None:
    old, new = "execution.savepoint.path", RECOVERY_PATH.key
    assert Configuration({old: "/old"}).read(RECOVERY_PATH) == "/old"
    assert Configuration({old: "/old", new: "/new"}).read(RECOVERY_PATH) == "/new"
    assert unknown_option(old) == ""
    with pytest.raises(ValidationError, match="CLAIM"):
        Configuration({"execution.savepoint-restore-mode": "LEGACY"}).read(CLAIM_MODE)


def test_values_that_would_be_ignored_are_refused() -> None:
    key = "table.exec.legacy-cast-behaviour"
    registry.check_all(Configuration({key: "disabled"}))
    with pytest.raises(NotSupportedError, match=f"'{key}' = 'ENABLED' is not supported"):
        registry.check_all(Configuration({key: "ENABLED"}))


def test_choices_do_not_depend_on_case() -> None:
    assert Configuration({RUNTIME_MODE.key: "batch"}).read(RUNTIME_MODE) == "batch"


def test_configurations_are_values() -> None:
    base = Configuration({"a": "1"})
    changed = base.with_value("b", "2").without("a")
    assert dict(base) == {"a": "1"}
    assert dict(changed) == {"b": "2"}
    assert base.read(PARALLELISM) == 0


@pytest.mark.parametrize(
    ("text", "number"),
    [("4", 4.0), (" 1.5 ", 1.5), (".5", 0.5), ("1.", 1.0), ("-1e-3d", -0.001), ("+2F", 2.0)],
)
def test_numbers_are_written_as_java_reads_them(text: str, number: float) -> None:
    assert parse_number(text) == number
