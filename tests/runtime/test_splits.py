"""Which splits of a source are not waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest

from tidemill.connectors.api import Offset, Splits, SplitSource
from tidemill.runtime.event_time.epochs import busy_splits, idle_splits


@dataclass(frozen=True)
class Two:
    """The splits a and b, of which an offset names those that have rows."""

    def splits(self, start: Offset | None, end: Offset) -> Splits:
        return Splits(("a", "b"), tuple(enumerate(end["rows"])))


@pytest.mark.parametrize(
    ("timeout", "now", "idle"),
    [(0, 9999, set()), (100, 1099, set()), (100, 1100, {"s/b"}), (100, 9999, {"s/b"})],
)
def test_a_split_without_rows_for_the_timeout_is_idle(timeout: int, now: int, idle: set[str]) -> None:
    sources, end = {"s": (cast(SplitSource, Two()), timeout)}, {"s": {"rows": ["a"]}}
    assert busy_splits(sources, {"s": None}, end) == {"s/a"}
    assert idle_splits(sources, {"s": None}, end, {"s/a": 0, "s/b": 1000}, now) == idle
