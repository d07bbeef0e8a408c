"""Pipelined exchanges give the answers of blocking ones, and what cannot be pipelined says why."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.runtime.pipelined_job import FILES, ROWS
from tests.runtime.pipelined_queries import QUERIES

ORDERED = ("first in order", "behind an offset", "few in order", "many in order")
WHY_NOT = {
    "many in order": ["BLOCKING: all rows are sorted"],
    "read twice": ["BLOCKING: an exchange is read twice"],
    "too many": ["BLOCKING: 10 tasks must run at once, and there are 8 slots"],
    "union of aggregations": ["BLOCKING: Union reads an exchange"],
    "nothing": [],
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """By name. A Spark of its own: that of the tests has too few slots."""
    folder = str(tmp_path_factory.mktemp("job"))
    command = [sys.executable, "-m", "tests.runtime.pipelined_job", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", QUERIES)
def test_answers(told: dict[str, dict[str, Any]], name: str) -> None:
    found = told[name]
    assert found["failed"] == []
    assert found["blocking"]
    if name in ORDERED:
        assert found["pipelined"] == found["blocking"]
    else:
        assert sorted(found["pipelined"]) == sorted(found["blocking"])


@pytest.mark.parametrize("name", QUERIES)
def test_what_explain_says(told: dict[str, dict[str, Any]], name: str) -> None:
    if name in WHY_NOT:
        assert told[name]["how"] == WHY_NOT[name]
    else:
        (how,) = told[name]["how"]
        assert how in {f"PIPELINED: {tasks} tasks at once" for tasks in (6, 7, 8)}


def test_an_insert_writes_each_row_once(told: dict[str, dict[str, Any]]) -> None:
    assert told["insert"]["failed"] == []
    counts = dict(line.split(",") for line in told["insert"]["lines"])
    assert len(counts) == len(told["insert"]["lines"]) == 1009
    assert sum(map(int, counts.values())) == FILES * ROWS


def test_who_has_no_slots_waits_for_none(told: dict[str, dict[str, Any]]) -> None:
    assert told["beside"]["answers"] == [told["join"]["blocking"]] * 12


def test_a_lost_task_costs_a_second_run(told: dict[str, dict[str, Any]]) -> None:
    assert told["lost"]["marks"] >= 1
    assert told["lost"]["rows"] == [f"('s{i}', {FILES * ROWS // 5})" for i in range(5)]
