"""Which tests a run takes.

| tier | tests | command |
|---|---|---|
| ``fast`` | those without Spark and without a process of their own | ``make test-fast`` |
| ``default`` | all but the thorough ones | ``make test`` |
| ``all`` | every test | ``make test-all`` |

A test's fixtures decide whether it is fast. ``@pytest.mark.thorough`` names the tests that only ``all`` runs:
each repeats, with more cases or in a process of its own, a behaviour that a default test asserts once.
Continuous integration adds a share of the thorough tests to the default ones (``--share=2/3``); the share
changes with the commit.
"""

from __future__ import annotations

import zlib

import pytest

TIERS = ("fast", "default", "all")
STARTED = frozenset({"spark", "postgres", "object_store", "google_store", "database", "processes"})
"""Fixtures that start Spark, a server or processes."""


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers")
    group.addoption("--tier", choices=TIERS, default="all", help="which tests to run")
    group.addoption("--share", help="also run share K of N of the thorough tests: K/N")


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves in ``items`` those that the options ask for."""
    tier, share = config.getoption("--tier"), config.getoption("--share")
    selected: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        runs = in_tier(item, tier) or (share is not None and in_share(item, share))
        (selected if runs else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = selected


def in_tier(item: pytest.Item, tier: str) -> bool:
    if tier == "all":
        return True
    if is_thorough(item):
        return False
    return tier == "default" or STARTED.isdisjoint(getattr(item, "fixturenames", ()))


def in_share(item: pytest.Item, share: str) -> bool:
    """Whether a thorough test is in share ``K/N``, by the hash of its name."""
    which, shares = (int(part) for part in share.split("/"))
    return is_thorough(item) and zlib.crc32(item.nodeid.encode()) % shares == which % shares


def is_thorough(item: pytest.Item) -> bool:
    return item.get_closest_marker("thorough") is not None
