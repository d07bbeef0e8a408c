"""Which epochs have one partition per operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from tidemill.runtime.epoch_parallelism import CALM_EPOCHS, STATE_PER_READ, EpochParallelism

SMALL = 1_000


@dataclass(frozen=True, slots=True)
class Sized:
    size: int | None


def ran(parallelism: EpochParallelism, size: int | None, **state: int) -> int:
    """The partitions of an epoch that reads so much and leaves so many bytes of ``state`` by operator."""
    made = parallelism.of_epoch(cast(Any, Sized(size)))
    parallelism.hear({name: {"operator": name, "state_bytes": bytes_} for name, bytes_ in state.items()})
    return made


def made(small_bytes: int = SMALL) -> EpochParallelism:
    return EpochParallelism(most=4, small_bytes=small_bytes, timed=frozenset({"window"}))


@pytest.mark.parametrize(("size", "partitions"), [(0, 1), (SMALL, 1), (SMALL + 1, 4), (None, 4)])
def test_what_an_epoch_reads_decides(size: int | None, partitions: int) -> None:
    assert ran(made(), size) == partitions


def test_small_epochs_after_a_large_one() -> None:
    parallelism = made()
    sizes = [5, SMALL * 2, *[5] * CALM_EPOCHS, 5, 5]
    assert [ran(parallelism, size) for size in sizes] == [1, 4, *[4] * CALM_EPOCHS, 1, 1]


def test_state_by_time_counts() -> None:
    parallelism = made()
    held = SMALL * STATE_PER_READ
    assert ran(parallelism, 5, join=held) == 1
    assert ran(parallelism, 5, window=held) == 1
    assert ran(parallelism, 5, window=0) == 4
    assert [ran(parallelism, 5) for _ in range(CALM_EPOCHS + 1)][-1] == 1


def test_state_that_nobody_knows() -> None:
    parallelism = made()
    parallelism.resume()
    assert [ran(parallelism, 5, window=10) for _ in range(CALM_EPOCHS + 2)][-2:] == [4, 1]


def test_no_epoch_is_small() -> None:
    assert ran(made(0), 0) == 4
