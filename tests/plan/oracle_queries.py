"""Column names, types and errors of queries against what Flink 2.3 answered.

The recording holds, per query over the view ``t`` below, the result's columns or the error's first line.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plan.environment import FakeEnvironment
from tidemill.errors import TidemillError
from tidemill.plan.optimizer import optimize

RECORDED: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("recorded_queries.json").read_text(encoding="utf-8")
)
T = "SELECT * FROM (VALUES (1, 'a', 10), (2, 'b', 20), (3, 'a', CAST(NULL AS INT))) AS t(id, g, v)"


def environment() -> FakeEnvironment:
    made = FakeEnvironment()
    made.add_view("t", T)
    return made


@pytest.mark.parametrize("sql", [q for q, answer in RECORDED.items() if "columns" in answer])
def test_columns(sql: str) -> None:
    plan = optimize(environment().bind(sql))
    assert [[f.name, str(f.type)] for f in plan.fields] == RECORDED[sql]["columns"]


@pytest.mark.parametrize("sql", [q for q, answer in RECORDED.items() if "error" in answer])
def test_errors(sql: str) -> None:
    with pytest.raises(TidemillError) as raised:
        environment().bind(sql)
    assert raised.value.message.startswith(RECORDED[sql]["error"])
    assert raised.value.position is not None
