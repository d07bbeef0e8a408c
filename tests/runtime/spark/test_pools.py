"""Whose tasks come first goes by who began first, though names are used again."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from pyspark.sql import SparkSession

from tidemill.runtime.spark.pools import POOL, Pools, in_turn


def test_names_go_up_and_begin_anew() -> None:
    pools = Pools()
    numbers = []
    for _ in range(40):
        numbers.append(pools.take())
        pools.give_back(numbers[-1])
    assert numbers == [*range(1, 17), *range(1, 17), *range(1, 9)]


@pytest.mark.parametrize("at_work", [1, 3, 10, 40, 200])
def test_who_waits_is_passed_by_few(at_work: int) -> None:
    """By those of one round that begin later and are first by name; and there are few names."""
    pools, chance = Pools(), random.Random(at_work)
    taken = [pools.take() for _ in range(at_work)]
    passed, highest = Counter[int](), 0
    for _ in range(20_000):
        place = chance.randrange(at_work)
        pools.give_back(taken[place])
        before, taken[place] = taken[place], pools.take()
        del passed[before]
        highest = max(highest, taken[place])
        for held in taken:
            passed[held] += taken[place] < held
    assert len(set(taken)) == at_work
    assert highest <= max(64, 4 * at_work) + at_work
    assert max(passed.values()) <= max(64, 4 * at_work)


def test_one_that_is_long_at_work_is_not_passed_for_ever() -> None:
    """A query of an hour beside others of a second: those that are first come once in a round of names."""
    pools = Pools()
    for _ in range(15):
        pools.give_back(pools.take())
    long, numbers = pools.take(), []
    for _ in range(640):
        numbers.append(pools.take())
        pools.give_back(numbers[-1])
    assert long == 16
    assert sum(number < long for number in numbers) == pytest.approx(640 * 15 / 63, abs=15)


def test_each_piece_of_work_has_its_own(spark: SparkSession) -> None:
    context = spark.sparkContext
    seen: list[str] = []
    for _ in range(2):
        with in_turn(context):
            seen.append(context.getLocalProperty(POOL) or "")
    assert len(set(seen)) == 2
    assert seen == sorted(seen) or seen[1] == "pool-000001"
