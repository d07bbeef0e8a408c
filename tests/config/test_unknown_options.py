"""A key that nothing reads is warned of once, and the nearest one is named."""

from __future__ import annotations

import logging

import pytest

from tests.session.environments import new_session
from tidemill.config.refused_options import ONLY
from tidemill.config.registry import BY_KEY
from tidemill.config.unknown_options import unknown_option
from tidemill.session.environment import TableEnvironment


def test_known_keys_are_not_warned_of() -> None:
    known = [
        *BY_KEY,
        *ONLY,
        "tidemill.spark.driver.memory",
        "state.backend.type",
        "taskmanager.numberOfTaskSlots",
    ]
    assert [k for k in known if unknown_option(k)] == []


def test_the_nearest_key_is_named() -> None:
    assert unknown_option("table.exec.minibatch.enabled") == (
        "There is no option 'table.exec.minibatch.enabled': it changes nothing. "
        "Did you mean 'table.exec.mini-batch.enabled'?"
    )
    assert "Did you mean 'execution.runtime-mode'?" in unknown_option("Execution.Runtime-Mode")


def test_a_key_like_no_other() -> None:
    assert unknown_option("table.optimizer.bushy").startswith(
        "Tidemill has no option 'table.optimizer.bushy'"
    )


def test_a_session_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    session = new_session()
    with caplog.at_level(logging.WARNING, "tidemill"):
        session.execute_sql("SET 'table.exec.state.tll' = '1 h'")
        session.get_config().set("table.exec.state.tll", "2 h")
        TableEnvironment.create({"parallelism.defaults": "2"})
    assert [r.getMessage().rpartition("it changes nothing. ")[2] for r in caplog.records] == [
        "Did you mean 'table.exec.state.ttl'?",
        "Did you mean 'parallelism.default'?",
    ]
