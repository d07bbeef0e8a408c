"""FROM t FOR SYSTEM_TIME AS OF a constant: the time becomes an option of the scan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.plan.environment import FakeEnvironment
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.plan import nodes as n

NOON = 1_690_804_800_000
"""2023-07-31 12:00:00 UTC."""


def environment() -> FakeEnvironment:
    found = FakeEnvironment(time_zone="Asia/Tokyo")
    lake = found.add_table("t", id="INT")
    found.objects[lake.path] = replace(lake, options={"connector": "delta", "table-path": "/nowhere"})
    found.add_table("f", id="INT")
    found.add_view("v", "SELECT id FROM t")
    return found


def asked(time: str) -> str:
    plan = environment().bind(
        f"SELECT * FROM t /*+ OPTIONS('mode'='batch') */ FOR SYSTEM_TIME AS OF {time} AS x"
    )
    while not isinstance(plan, n.Scan):
        (plan,) = plan.inputs
    options = dict(plan.options)
    assert options["mode"] == "batch"
    return options["as-of-millis"]


@pytest.mark.parametrize(
    ("time", "millis"),
    [
        ("TIMESTAMP '2023-07-31 21:00:00'", NOON),
        ("TIMESTAMP '2023-07-31 21:00:00.123456'", NOON + 123),
        ("TIMESTAMP '2023-08-01 21:00:00' - INTERVAL '1' DAY", NOON),
        ("TIMESTAMP '2023-07-31 20:59:00' + INTERVAL '1' MINUTE", NOON),
        ("CAST('2023-07-31 21:00:00' AS TIMESTAMP(3))", NOON),
    ],
)
def test_a_constant_time_is_in_the_zone_of_the_session(time: str, millis: int) -> None:
    assert asked(time) == str(millis)


@pytest.mark.parametrize(
    "time", ["CURRENT_TIMESTAMP", "5", "'2023-07-31 00:00:00'", "CAST(NULL AS TIMESTAMP(3))"]
)
def test_other_times_are_refused(time: str) -> None:
    with pytest.raises(ValidationError, match="Unsupported time travel expression"):
        asked(time)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("f", "tables of connector 'filesystem' keep no versions"),
        ("v", "FOR SYSTEM_TIME AS OF 'v', which is not a table"),
    ],
)
def test_what_keeps_no_versions_is_refused(source: str, message: str) -> None:
    with pytest.raises(NotSupportedError, match=message) as found:
        environment().bind(f"SELECT * FROM {source} FOR SYSTEM_TIME AS OF TIMESTAMP '2023-07-31 00:00:00'")
    assert found.value.position is not None
