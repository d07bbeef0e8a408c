"""What a worker keeps of a table that is asked by key: against dicts, with a clock of their own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from tidemill.connectors.api import LookedUp
from tidemill.connectors.lookup.asking import Asking, OpenedTable
from tidemill.connectors.lookup.options import Caching, Full, Partial, Periodic, Retry, Timed, caching
from tidemill.errors import ValidationError

TYPES = (pa.int32(), pa.string())


@dataclass
class Shelf:
    """A table that remembers what it was asked, by key or whole."""

    rows: dict[int, list[str]] = field(default_factory=dict)
    asked: list[list[int]] = field(default_factory=list)
    scans: int = 0
    changes: int = 0

    def lookup(self, keys: pa.Table) -> LookedUp:
        wanted = keys.column("k").to_pylist()
        self.asked.append(wanted)
        return LookedUp(self._table(wanted), 1)

    def version(self) -> Hashable:
        return self.changes

    def scan(self) -> pa.Table:
        self.scans += 1
        return self._table(list(self.rows))

    def _table(self, keys: list[int]) -> pa.Table:
        pairs = [(k, v) for k in keys for v in self.rows.get(k, ())]
        columns = [pa.array([p[i] for p in pairs], kind) for i, kind in enumerate(TYPES)]
        return pa.table(columns, names=["k", "v"])


@dataclass
class Clock:
    now: float = 1_000_000.0
    pauses: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now


def opened(shelf: Shelf, clock: Clock, kept: Caching, retry: Retry | None = None) -> OpenedTable:
    asking = Asking(
        table=shelf,
        keys=("k",),
        types=(pa.int32(),),
        caching=kept,
        retry=retry,
        clock=clock,
        pause=clock.pauses.append,
    )
    return asking.opened()


def ask(table: OpenedTable, *keys: int) -> list[tuple[int, str]]:
    table.refresh()
    found = table.lookup(pa.table({"k": pa.array(keys, pa.int32())})).rows.to_pylist()
    return sorted((row["k"], row["v"]) for row in found if row["k"] in keys)


_KEYS = st.sets(st.integers(0, 5), max_size=4)
_EVENTS = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 3.0]), _KEYS, st.none() | st.integers(0, 5)), max_size=20
)


@settings(max_examples=examples(150), deadline=None)
@given(
    events=_EVENTS,
    write=st.none() | st.just(4.0),
    access=st.none() | st.just(2.0),
    misses=st.booleans(),
)
def test_answers_are_kept_until_they_are_too_old(
    events: list[tuple[float, set[int], int | None]], write: float | None, access: float | None, misses: bool
) -> None:
    """Against a dict of answers with their times; the table changes between the questions."""
    shelf, clock = Shelf({0: ["a"], 1: ["b", "b"], 2: ["c"]}), Clock()
    table = opened(shelf, clock, Partial(after_write=write, after_access=access, misses=misses))
    known: dict[int, tuple[list[str], float, float]] = {}
    for number, (later, keys, changed) in enumerate(events):
        clock.now += later
        if changed is not None:
            shelf.rows[changed] = [f"{number}"] * (number % 3)
        for key, (_, written, accessed) in list(known.items()):
            old = write is not None and clock.now - written >= write
            if old or (access is not None and clock.now - accessed >= access):
                del known[key]
        shelf.asked.clear()
        shown = ask(table, *keys)
        unknown = keys - known.keys()
        assert [set(x) for x in shelf.asked if x] == [unknown] * bool(unknown)
        answers = {k: known[k][0] if k in known else list(shelf.rows.get(k, ())) for k in keys}
        assert shown == sorted((k, v) for k, values in answers.items() for v in values)
        for key in keys:
            written = known[key][1] if key in known else clock.now
            if misses or answers[key]:
                known[key] = (answers[key], written, clock.now)


def test_the_rows_that_were_asked_for_longest_ago_make_room() -> None:
    shelf, clock = Shelf({1: ["a", "b"], 2: ["c"], 3: ["d"]}), Clock()
    table = opened(shelf, clock, Partial(max_rows=3))
    for key in (1, 2, 1, 3):
        clock.now += 1
        ask(table, key)
    shelf.asked.clear()
    assert ask(table, 1, 3) == [(1, "a"), (1, "b"), (3, "d")]
    assert ask(table, 2) == [(2, "c")]
    assert shelf.asked == [[2]]


def test_a_whole_table_is_read_again_when_that_is_due() -> None:
    shelf, clock = Shelf({1: ["a"]}), Clock()
    table = opened(shelf, clock, Full(reload=Periodic(seconds=10)))
    assert ask(table, 1, 2) == [(1, "a")]
    shelf.rows = {1: ["b"], 2: ["c"]}
    clock.now += 9
    assert ask(table, 1, 2) == [(1, "a")]
    clock.now += 1
    assert ask(table, 1, 2) == [(1, "b"), (2, "c")]
    assert (shelf.scans, shelf.asked) == (2, [])


def test_times_of_the_day() -> None:
    at = dt.datetime(2024, 5, 1, 9, 0, tzinfo=dt.UTC).timestamp()
    daily = Timed(time=dt.time.fromisoformat("10:15Z"))
    assert daily.due(at, at, at) - at == 75 * 60
    assert daily.due(at, at + 75 * 60, at + 75 * 60) - at == 75 * 60 + 86400
    third = Timed(time=dt.time.fromisoformat("10:15+02:00"), days=3)  # 08:15 in UTC: tomorrow
    assert third.due(at, at, at) - at == (23 * 60 + 15) * 60
    assert third.due(at, at + 86400, at + 86400) - at == (23 * 60 + 15) * 60 + 3 * 86400


def test_a_table_that_is_only_read_whole_is_read_when_it_has_changed() -> None:
    @dataclass
    class Whole:
        shelf: Shelf

        def version(self) -> Hashable:
            return self.shelf.version()

        def scan(self) -> pa.Table:
            return self.shelf.scan()

    shelf, clock = Shelf({1: ["a"]}), Clock()
    asking = Asking(table=Whole(shelf), keys=("k",), types=(pa.int32(),), clock=clock)
    table = asking.opened()
    assert ask(table, 1) == ask(table, 1) == [(1, "a")]
    shelf.rows, shelf.changes = {1: ["b"]}, 1
    assert ask(table, 1) == [(1, "b")]
    assert shelf.scans == 2


@pytest.mark.parametrize("kept", [None, Partial()])
def test_rows_that_are_not_there_yet(kept: Caching) -> None:
    class Slow(Shelf):
        def lookup(self, keys: pa.Table) -> LookedUp:
            if len(self.asked) == 2:
                self.rows[7] = ["late"]
            return super().lookup(keys)

    shelf, clock = Slow({1: ["a"]}), Clock()
    table = opened(shelf, clock, kept, Retry(delay=0.5, attempts=3))
    assert ask(table, 1, 7, 8) == [(1, "a"), (7, "late")]
    assert shelf.asked == [[1, 7, 8], [7, 8], [7, 8], [8]]
    assert clock.pauses == [0.5] * 3
    assert ask(table, 8) == []
    assert len(shelf.asked) == (8 if kept is None else 4)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, None),
        ({"lookup.cache": "partial", "lookup.partial-cache.max-rows": "5"}, Partial(max_rows=5)),
        (
            {"lookup.cache.max-rows": "9", "lookup.cache.ttl": "1 min"},
            Partial(max_rows=9, after_write=60),
        ),
        (
            {
                "lookup.cache": "FULL",
                "lookup.full-cache.periodic-reload.interval": "1 h",
                "lookup.full-cache.periodic-reload.schedule-mode": "FIXED_RATE",
            },
            Full(reload=Periodic(seconds=3600, from_start=True)),
        ),
    ],
)
def test_what_options_say(options: dict[str, str], expected: Caching) -> None:
    assert caching(options) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"Missing 'lookup.full-cache.periodic-reload.interval'"),
        ({"lookup.full-cache.reload-strategy": "TIMED"}, "Missing 'lookup.full-cache.timed-reload.iso-time'"),
        (
            {
                "lookup.full-cache.reload-strategy": "TIMED",
                "lookup.full-cache.timed-reload.iso-time": "noon",
            },
            "'noon' for key 'lookup.full-cache.timed-reload.iso-time'",
        ),
        ({"lookup.full-cache.periodic-reload.interval": "0 s"}, "must be positive"),
    ],
)
def test_options_that_say_nothing(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        caching({"lookup.cache": "FULL", **options})
