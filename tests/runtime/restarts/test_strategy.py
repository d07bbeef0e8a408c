"""Restart strategies by the numbers of Flink's documentation."""

from __future__ import annotations

import pytest

from tidemill.config.option import Configuration
from tidemill.errors import ValidationError
from tidemill.runtime.restarts.strategy import ExponentialDelay, strategy_of

EXPONENTIAL = "restart-strategy.exponential-delay."


def waits(options: dict[str, str], *failures: float) -> list[float | None]:
    """What the strategy says to failures at these seconds."""
    strategy = strategy_of(Configuration({f"restart-strategy.{k}": v for k, v in options.items()}))
    if isinstance(strategy, ExponentialDelay):
        strategy.chance = lambda: 0.0
    return [strategy.after_failure(now) for now in failures]


@pytest.mark.parametrize(
    ("options", "failures", "expected"),
    [
        ({}, (0.0,), [None]),
        ({"type": "Off"}, (0.0,), [None]),
        ({"type": "fixed-delay"}, (0.0, 9.0), [1.0, None]),
        (
            {"type": "fixeddelay", "fixed-delay.attempts": "2", "fixed-delay.delay": "3 s"},
            (0.0, 1.0, 9000.0),
            [3.0, 3.0, None],
        ),
        ({"type": "fixed-delay", "fixed-delay.attempts": "0"}, (0.0,), [None]),
        (
            {"type": "failure-rate", "failure-rate.max-failures-per-interval": "2"},
            (0.0, 30.0, 61.0, 85.0),
            [1.0, 1.0, 1.0, None],
        ),
        ({"type": "exponential-delay"}, (0.0, 2.0, 4.0, 7.0), [1.0, 1.5, 2.25, 3.375]),
        (
            {
                "type": "exponential-delay",
                "exponential-delay.backoff-multiplier": "10",
                "exponential-delay.reset-backoff-threshold": "100 s",
            },
            # The last two: 99 s and 100 s after the job was started again.
            (0.0, 2.0, 20.0, 179.0, 339.0),
            [1.0, 10.0, 60.0, 60.0, 1.0],
        ),
        (
            {"type": "exponential-delay", "exponential-delay.attempts-before-reset-backoff": "2"},
            (0.0, 1.0, 2.0),
            [1.0, 1.5, None],
        ),
    ],
)
def test_waits(options: dict[str, str], failures: tuple[float, ...], expected: list[float | None]) -> None:
    assert waits(options, *failures) == expected


def test_jitter_spreads_a_wait_to_both_sides_and_never_beyond_the_longest() -> None:
    strategy = ExponentialDelay(first=10, longest=20, factor=4, reset=1e9, jitter=0.1, attempts=9)
    strategy.chance = lambda: 1.0
    assert [strategy.after_failure(0), strategy.after_failure(0)] == [11.0, 20.0]
    strategy.chance = lambda: -1.0
    assert strategy.after_failure(0) == 18.0


@pytest.mark.parametrize(
    "options",
    [
        {"type": "sometimes"},
        {"type": "fixed-delay", "fixed-delay.attempts": "-1"},
        {"type": "exponential-delay", EXPONENTIAL.partition(".")[2] + "backoff-multiplier": "1"},
        {"type": "exponential-delay", "exponential-delay.jitter-factor": "2"},
        {"type": "exponential-delay", "exponential-delay.initial-backoff": "2 min"},
    ],
)
def test_numbers_that_mean_nothing_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        waits(options)
