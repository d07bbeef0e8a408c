"""Pipelined exchanges give the answers of blocking ones, and what cannot be pipelined says why."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from tests.runtime.pipelined_job import FILES, ROWS
from tests.runtime.pipelined_queries import QUERIES
from tidemill.physical.batch.view.steps import ADAPTIVE, AHEAD

pytestmark = pytest.mark.thorough

ORDERED = (
    "first in order",
    "behind an offset",
    "few in order",
    "many in order",
    "in order, nobody knows how many",
    "in order, too many",
)
LATE, EARLY = (
    "a task that writes one ended before its time",
    "a task that reads one ended before all was sent",
)
"""What may be heard before the reason."""
LOST = ("a process of Spark's was lost", LATE, EARLY)
WHY_NOT = {
    "in order, nobody knows how many": ["BLOCKING: nobody knows how many rows are sorted"],
    "in order, too many": ["BLOCKING: up to 113 MiB of rows are sorted"],
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
    expected = [how.removeprefix("BLOCKING: ") for how in WHY_NOT.get(name, [])]
    # Who has rows enough for a LIMIT reads no more.
    assert found["told"] == expected or ("LIMIT" in QUERIES[name] and found["told"] == [EARLY])
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


@pytest.mark.parametrize("name", QUERIES)
def test_what_moves_without_adaptive_execution_is_planned_ahead(
    told: dict[str, dict[str, Any]], name: str
) -> None:
    if told[name]["how"]:
        assert told[name]["runs"] == [ADAPTIVE if name in WHY_NOT else AHEAD]


def test_an_insert_writes_each_row_once(told: dict[str, dict[str, Any]]) -> None:
    assert told["insert"]["told"] == []
    counts = dict(line.split(",") for line in told["insert"]["lines"])
    assert len(counts) == len(told["insert"]["lines"]) == 1009
    assert sum(map(int, counts.values())) == FILES * ROWS


def test_who_has_no_slots_waits_for_none(told: dict[str, dict[str, Any]]) -> None:
    assert told["beside"]["answers"] == [told["join"]["blocking"]] * 12
    refused = re.compile(r"Spark refused: needs 8 concurrent task slots, only \d+")
    assert [reason for reason in told["beside"]["told"] if not refused.fullmatch(reason)] == []


def test_a_lost_task_costs_a_second_run(told: dict[str, dict[str, Any]]) -> None:
    assert told["lost"]["marks"] >= 1
    assert len(told["lost"]["told"]) == 1
    assert told["lost"]["told"][0] in LOST
    assert told["lost"]["rows"] == [f"('s{i}', {FILES * ROWS // 5})" for i in range(5)]


@pytest.mark.parametrize(("name", "said"), [("bad above", EARLY), ("bad below", LATE)])
def test_what_a_task_fails_with_is_told(told: dict[str, dict[str, Any]], name: str, said: str) -> None:
    """Whether it is heard of first, or those that read from it or send to it."""
    assert told[name]["error"].endswith("/ by zero")
    assert told[name]["told"] in ([], [said])


@pytest.mark.parametrize("mode", ["PIPELINED", "BLOCKING"])
def test_what_outlives_a_failed_insert_leaves_nothing(told: dict[str, dict[str, Any]], mode: str) -> None:
    found = told[f"outlived {mode}"]
    assert "The other one goes on." in found["error"]
    assert found["adaptive"][0] == ("false" if mode == "PIPELINED" else "true")
    assert found["left"] == []
