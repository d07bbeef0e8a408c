"""What was used last is kept, within bounds."""

from __future__ import annotations

from tidemill.last_used import LastUsed


def kept(cache: LastUsed[int], *keys: str) -> list[str]:
    return [key for key in keys if cache.get(key) is not None]


def test_what_was_not_used_for_the_longest_time_goes_first() -> None:
    cache = LastUsed[int](most=2, heaviest=100, weight=lambda value: value)
    cache.keep("a", 1)
    cache.keep("b", 2)
    assert cache.get("a") == 1
    cache.keep("c", 3)
    assert kept(cache, "a", "b", "c") == ["a", "c"]


def test_a_heavy_one_makes_room() -> None:
    cache = LastUsed[int](most=9, heaviest=10, weight=lambda value: value)
    for key, weight in (("a", 4), ("b", 4), ("c", 2), ("d", 5)):
        cache.keep(key, weight)
    assert kept(cache, "a", "b", "c", "d") == ["c", "d"]


def test_one_that_is_too_heavy_is_kept_alone() -> None:
    cache = LastUsed[int](most=9, heaviest=10, weight=lambda value: value)
    cache.keep("a", 1)
    cache.keep("b", 11)
    assert kept(cache, "a", "b") == ["b"]
    cache.keep("c", 1)
    assert kept(cache, "b", "c") == ["c"]


def test_a_value_in_another_s_place_has_its_own_weight() -> None:
    cache = LastUsed[int](most=9, heaviest=10, weight=lambda value: value)
    cache.keep("a", 9)
    cache.keep("a", 1)
    cache.keep("b", 9)
    assert kept(cache, "a", "b") == ["a", "b"]
