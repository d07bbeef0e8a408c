"""Which tests a run takes.

| tier | tests | command |
|---|---|---|
| ``fast`` | those without Spark and without a process of their own | ``make test-fast`` |
| ``default`` | all but the thorough ones | ``make test`` |
| ``all`` | every test | ``make test-all`` |

A test's fixtures decide whether it is fast. Two kinds of tests are thorough, and only ``all`` runs them:

- tests with ``@pytest.mark.thorough``: each repeats, with more cases or in a process of its own, a behaviour
  that a default test asserts once;
- the cases of a parametrized test between its first and its last one, if the test starts Spark or a server.
  All cases of a test with ``@pytest.mark.every_case`` stay in the default tier, and of a test with
  ``@pytest.mark.one_case`` the first one alone.

Tests with random examples make all of them in ``all`` only, and a fifth otherwise (``examples``). Tests that
go through a list of queries take every fifth otherwise; with ``--share=2/6`` they take every sixth, beginning
with the one that the share names (``sampled``).

Continuous integration adds a share of the thorough tests to the default ones (``--share=2/6``); the share
changes with the commit.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

TIERS = ("fast", "default", "all")
STARTED = frozenset(
    {"spark", "postgres", "object_store", "google_store", "kafka", "mariadb", "database", "processes"}
)
"""Fixtures that start Spark, a server or processes."""
_FEWER = 5
_T = TypeVar("_T")
_chosen = "all"
_share: str | None = None


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers")
    group.addoption("--tier", choices=TIERS, default="all", help="which tests to run")
    group.addoption("--share", help="also run share K of N of the thorough tests: K/N")


def examples(count: int) -> int:
    """How many of ``count`` random examples a test makes in this run."""
    return count if _chosen == "all" else max(count // _FEWER, 2)


def sampled(cases: Iterable[_T]) -> list[_T]:
    """Those of ``cases`` that a test goes through in this run."""
    first, step = 0, 1 if _chosen == "all" else _FEWER
    if _chosen != "all" and _share is not None:
        first, step = _numbers(_share)
    found = list(cases)
    return found[first % step :: step] or found[:1]


def choose(config: pytest.Config) -> None:
    """Notes the tier before test modules are imported, which ask for ``examples``."""
    global _chosen, _share
    _chosen, _share = config.getoption("--tier"), config.getoption("--share")


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves in ``items`` those that the options ask for."""
    tier, share = config.getoption("--tier"), config.getoption("--share")
    thorough = thorough_of(items)
    selected: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        if item.nodeid in thorough:
            runs = tier == "all" or (share is not None and in_share(item.nodeid, share))
        else:
            runs = tier != "fast" or is_fast(item)
        (selected if runs else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = selected


def thorough_of(items: Sequence[pytest.Item]) -> set[str]:
    """The ids of the thorough tests among all that were collected."""
    marked = {item.nodeid for item in items if item.get_closest_marker("thorough")}
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.nodeid not in marked and not is_fast(item) and not item.get_closest_marker("every_case"):
            cases[item.nodeid.partition("[")[0]].append(item)
    return marked.union(*map(_repeated, cases.values()))


def _repeated(cases: Sequence[pytest.Item]) -> set[str]:
    """The ids of the thorough ones among the cases of one test."""
    rest = cases[1:] if cases[0].get_closest_marker("one_case") else cases[1:-1]
    return {case.nodeid for case in rest}


def is_fast(item: pytest.Item) -> bool:
    return STARTED.isdisjoint(getattr(item, "fixturenames", ()))


def in_share(nodeid: str, share: str) -> bool:
    """Whether a thorough test is in share ``K/N``, by the hash of its name."""
    which, shares = _numbers(share)
    return zlib.crc32(nodeid.encode()) % shares == which % shares


def _numbers(share: str) -> tuple[int, int]:
    which, shares = share.split("/")
    return int(which), int(shares)
