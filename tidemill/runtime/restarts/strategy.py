"""How long to wait before a failed job is started again: Flink's restart strategies.

A strategy is told of each failure and says how many seconds to wait, or None: the job has failed. Times are
those of a clock that only grows; one job has one strategy.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from tidemill.config import restart_options as o
from tidemill.config.option import Configuration
from tidemill.errors import ValidationError


class Strategy(Protocol):
    def after_failure(self, now: float) -> float | None:
        """Seconds to wait; None where the job is not to be started again."""
        ...


@dataclass(slots=True)
class NoRestart:
    def after_failure(self, now: float) -> float | None:
        return None


@dataclass(slots=True, kw_only=True)
class FixedDelay:
    """The same wait each time, ``attempts`` times in a job's life."""

    attempts: int
    delay: float

    def after_failure(self, now: float) -> float | None:
        self.attempts -= 1
        return self.delay if self.attempts >= 0 else None


@dataclass(slots=True, kw_only=True)
class FailureRate:
    """The same wait each time, until more than ``most`` failures fall into ``interval`` seconds."""

    most: int
    interval: float
    delay: float
    _failures: deque[float] = field(default_factory=deque)

    def after_failure(self, now: float) -> float | None:
        self._failures.append(now)
        while now - self._failures[0] > self.interval:
            self._failures.popleft()
        return self.delay if len(self._failures) <= self.most else None


@dataclass(slots=True, kw_only=True)
class ExponentialDelay:
    """Each wait longer than the one before by ``factor``, up to ``longest``; ``reset`` seconds without a
    failure begin anew. ``chance`` gives numbers from -1 to 1."""

    first: float
    longest: float
    factor: float
    reset: float
    jitter: float
    attempts: int
    chance: Callable[[], float] = lambda: random.uniform(-1, 1)
    _wait: float = 0.0
    _tried: int = 0
    _restarted: float = 0.0

    def after_failure(self, now: float) -> float | None:
        if self._tried and now - self._restarted >= self.reset:
            self._tried = 0
        self._wait = min(self._wait * self.factor, self.longest) if self._tried else self.first
        self._tried += 1
        if self._tried > self.attempts:
            return None
        wait = min(self._wait * (1 + self.jitter * self.chance()), self.longest)
        self._restarted = now + wait
        return wait


def strategy_of(config: Configuration) -> Strategy:
    """What the options ask for; ValidationError for numbers that mean nothing."""
    return _KINDS.get(config.read(o.TYPE).lower().replace("-", ""), _none)(config)


def _none(config: Configuration) -> Strategy:
    return NoRestart()


def _fixed(config: Configuration) -> Strategy:
    return FixedDelay(attempts=config.read(o.FIXED_ATTEMPTS), delay=config.read(o.FIXED_DELAY).seconds)


def _rate(config: Configuration) -> Strategy:
    return FailureRate(
        most=config.read(o.RATE_FAILURES),
        interval=config.read(o.RATE_INTERVAL).seconds,
        delay=config.read(o.RATE_DELAY).seconds,
    )


def _exponential(config: Configuration) -> Strategy:
    factor, jitter = config.read(o.BACKOFF_FACTOR), config.read(o.JITTER)
    first, longest = config.read(o.FIRST_BACKOFF).seconds, config.read(o.MAX_BACKOFF).seconds
    if factor <= 1:
        raise ValidationError(f"'{o.BACKOFF_FACTOR.key}' is {factor}; it must be greater than 1")
    if not 0 <= jitter <= 1:
        raise ValidationError(f"'{o.JITTER.key}' is {jitter}; it must be between 0 and 1")
    if first <= 0 or longest <= first:
        raise ValidationError(
            f"'{o.FIRST_BACKOFF.key}' must be positive, and '{o.MAX_BACKOFF.key}' longer; "
            f"they are {first} s and {longest} s"
        )
    return ExponentialDelay(
        first=first,
        longest=longest,
        factor=factor,
        reset=config.read(o.BACKOFF_RESET).seconds,
        jitter=jitter,
        attempts=config.read(o.BACKOFF_ATTEMPTS),
    )


_KINDS: dict[str, Callable[[Configuration], Strategy]] = {
    "fixeddelay": _fixed,
    "failurerate": _rate,
    "exponentialdelay": _exponential,
}
