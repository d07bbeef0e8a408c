"""Messages of the plug-in ``pgoutput`` (protocol version 1) as rows that change a table.

A transaction is ``B`` (begin: log position of its commit record, time, id), changes, and ``C``. A change is
``I``, ``U`` or ``D`` of a table, behind ``R`` of the same table, which names its columns. All messages of one
kind are taken apart at once. What cannot be told exactly is an error, never a guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.rowkind import RowKind
from tidemill.connectors.postgres_cdc.offsets import ChangeRange, shown
from tidemill.connectors.postgres_cdc.tuples import UNCHANGED, Bytes, Ints, Values
from tidemill.errors import ConnectorError, NotSupportedError

_BEGIN, _RELATION, _INSERT, _UPDATE, _DELETE, _TRUNCATE = (ord(letter) for letter in "BRIUDT")
_KEY, _OLD, _NEW = (ord(letter) for letter in "KON")
_FULL = "f"
_EPOCH_MICROS = 946_684_800_000_000
"""The server counts from the year 2000."""


@dataclass(frozen=True, slots=True)
class Relation:
    """``names`` of all columns, in order; ``keys``: those that tell a row by the table's replica identity."""

    names: tuple[str, ...]
    types: tuple[int, ...]
    keys: frozenset[str]
    full: bool


@dataclass(frozen=True, slots=True)
class Transactions:
    """Of each message that of its transaction: where its commit record begins, its time in microseconds."""

    commits: Ints
    times: Ints
    wanted: Any


@dataclass(frozen=True, slots=True)
class Rows:
    """``places``: twice the number of the message, and one more for the row that takes another's place.
    ``kinds``: as of RowKind. ``columns`` by name, of texts."""

    places: Ints
    kinds: Any
    times: Ints
    columns: dict[str, pa.Array]


@dataclass(frozen=True, slots=True)
class _Part:
    """``numbers`` of messages of one kind, and their rows of one ``kind``."""

    numbers: Ints
    kind: RowKind
    columns: list[Values]
    second: bool = False


@dataclass(slots=True, kw_only=True)
class Changes:
    """The changes of ``table`` (its name is ``name``) in ``part``. ``wanted``: names of columns. ``keys``:
    the table's primary key if changes are by key, () if they come with all of the row before.

    Call ``rows`` with all messages in order, in as many pieces as you like.
    """

    table: int
    name: str
    part: ChangeRange
    wanted: Sequence[str]
    keys: tuple[str, ...]
    _relation: Relation | None = None
    _last: tuple[int, int, bool] = (0, 0, False)
    _passed: int = 0

    def rows(self, messages: list[bytes]) -> Iterator[Rows]:
        found = Bytes(messages)
        letters = found.letters(found.starts)
        transactions = self._transactions(found, letters)
        truncates = np.flatnonzero((letters == _TRUNCATE) & transactions.wanted)
        self._check_truncated(found, truncates, transactions)
        ours = np.isin(letters, (_INSERT, _UPDATE, _DELETE, _RELATION))
        ours[ours] = found.ints(found.starts[ours] + 1) % (1 << 32) == self.table
        changes = ours & (letters != _RELATION) & transactions.wanted
        numbers = self._passed + np.cumsum(changes) - 1
        self._passed += int(changes.sum())
        for start, end in self._stretches(messages, np.flatnonzero(ours & (letters == _RELATION))):
            within = np.zeros(len(messages), bool)
            within[start:end] = True
            chosen = np.flatnonzero(within & changes)
            if len(chosen):
                yield self._changed(found, letters, chosen, numbers, transactions)

    def _transactions(self, found: Bytes, letters: Any) -> Transactions:
        """The last piece's transaction goes on in the next one."""
        begins = np.flatnonzero(letters == _BEGIN)
        at = found.starts[begins]
        commits, times, xids = found.longs(at + 1), found.longs(at + 9), found.ints(at + 17) % (1 << 32)
        part = self.part
        wanted = (commits >= part.start) & (commits < part.end)
        if part.seen is not None:
            wanted &= ~part.seen.holds(xids, commits)
        which = np.cumsum(letters == _BEGIN)
        commits, times, wanted = (
            np.concatenate([[before], now])
            for before, now in zip(self._last, (commits, times + _EPOCH_MICROS, wanted), strict=True)
        )
        self._last = (int(commits[-1]), int(times[-1]), bool(wanted[-1]))
        return Transactions(commits[which], times[which], wanted[which].astype(bool))

    def _check_truncated(self, found: Bytes, numbers: Ints, transactions: Transactions) -> None:
        for number in numbers:
            at = int(found.starts[number])
            count = int(found.ints(np.array([at + 1]))[0])
            if self.table in found.ints(at + 6 + 4 * np.arange(count)) % (1 << 32):
                raise NotSupportedError(
                    f"Table '{self.name}' was emptied by TRUNCATE{_where(transactions, number)}: which"
                    " rows it had is not known any more.",
                    hint="Start the job with a checkpoint directory and a slot of its own, or use DELETE.",
                )

    def _stretches(self, messages: list[bytes], relations: Ints) -> Iterator[tuple[int, int]]:
        """From one description of the table to the next."""
        ends = [*relations, len(messages)]
        yield 0, ends[0]
        for at, end in zip(relations, ends[1:], strict=True):
            self._relation = _relation(messages[at])
            yield at, end

    def _check(self, relation: Relation) -> None:
        """That the table was then as it is declared."""
        for name in sorted({*self.wanted, *self.keys}):
            if name not in relation.names:
                raise self._altered(name, "the table had no such column")
            if relation.types[relation.names.index(name)] != self.part.columns[name][1]:
                raise self._altered(name, "it had another type")
        if self.keys and not relation.full and relation.keys != frozenset(self.keys):
            raise ConnectorError(
                f"Table '{self.name}' tells rows by ({', '.join(sorted(relation.keys))}), but the declared"
                f" PRIMARY KEY is ({', '.join(self.keys)}).",
                hint=f"Declare the same key, or: ALTER TABLE {self.name} REPLICA IDENTITY FULL.",
            )

    def _altered(self, column: str, what: str) -> ConnectorError:
        return ConnectorError(
            f"Table '{self.name}', column '{column}': when the changes were made that are to be read next,"
            f" {what}.",
            hint="Start the job with a checkpoint directory and a slot of its own.",
        )

    def _changed(
        self, found: Bytes, letters: Any, chosen: Ints, numbers: Ints, transactions: Transactions
    ) -> Rows:
        """``chosen`` messages in the order of their rows."""
        assert self._relation is not None  # the server describes a table before it changes it
        self._check(self._relation)
        parts = [
            *self._inserts(found, chosen[letters[chosen] == _INSERT]),
            *self._updates(found, chosen[letters[chosen] == _UPDATE], transactions),
            *self._deletes(found, chosen[letters[chosen] == _DELETE], transactions),
        ]
        messages = np.concatenate([p.numbers for p in parts])
        seconds = np.concatenate([np.full(len(p.numbers), p.second) for p in parts])
        kinds = np.concatenate([np.full(len(p.numbers), p.kind, np.int8) for p in parts])
        places = 2 * numbers[messages] + seconds
        order = np.argsort(places)
        columns = {}
        for name in self.wanted:
            index = self._relation.names.index(name)
            values = Values.joined([p.columns[index] for p in parts]).chosen(order)
            self._check_sent(name, values, messages[order], transactions)
            columns[name] = found.texts(values)
        return Rows(places[order], kinds[order], transactions.times[messages[order]], columns)

    def _inserts(self, found: Bytes, numbers: Ints) -> Iterator[_Part]:
        yield _Part(numbers, RowKind.INSERT, self._tuple(found, found.starts[numbers] + 6)[0])

    def _updates(self, found: Bytes, numbers: Ints, transactions: Transactions) -> Iterator[_Part]:
        """A message may have the old row, or its key, before the new row."""
        at = found.starts[numbers] + 5
        marks = found.letters(at)
        self._check_before(marks, numbers, transactions)
        bare = marks == _NEW
        yield _Part(numbers[bare], RowKind.UPDATE_AFTER, self._tuple(found, at[bare] + 1)[0], True)
        old, end = self._tuple(found, at[~bare] + 1)
        whole = marks[~bare] == _OLD
        new = [
            after.or_else(Values(before.starts, np.where(whole, before.lengths, UNCHANGED)))
            for after, before in zip(self._tuple(found, end + 1)[0], old, strict=True)
        ]
        yield _Part(numbers[~bare], RowKind.UPDATE_AFTER, new, True)
        if not self.keys:
            yield _Part(numbers[~bare], RowKind.UPDATE_BEFORE, old)
            return
        moved = self._moved(found, old, new)
        yield _Part(numbers[~bare][moved], RowKind.DELETE, [column.chosen(moved) for column in old])

    def _moved(self, found: Bytes, old: list[Values], new: list[Values]) -> Any:
        """Whether the key of a row is another one now."""
        assert self._relation is not None
        moved = np.zeros(len(old[0].starts), bool)
        for name in self.keys:
            index = self._relation.names.index(name)
            differs = pc.not_equal(found.texts(old[index]), found.texts(new[index]))
            moved |= differs.fill_null(False).to_numpy(zero_copy_only=False)
        return moved

    def _deletes(self, found: Bytes, numbers: Ints, transactions: Transactions) -> Iterator[_Part]:
        at = found.starts[numbers] + 5
        self._check_before(found.letters(at), numbers, transactions)
        yield _Part(numbers, RowKind.DELETE, self._tuple(found, at + 1)[0])

    def _tuple(self, found: Bytes, places: Ints) -> tuple[list[Values], Ints]:
        """The rows at ``places``, each behind the number of its columns."""
        assert self._relation is not None
        return found.changed(places + 2, len(self._relation.names))

    def _check_before(self, marks: Any, numbers: Ints, transactions: Transactions) -> None:
        """With all of the row before, if changes are not by key."""
        if self.keys:
            return
        bad = np.flatnonzero(marks != _OLD)
        if len(bad):
            raise ConnectorError(
                f"Table '{self.name}': a change{_where(transactions, numbers[bad[0]])} lacks the row before,"
                " as the replica identity was then.",
                hint=f"{self._full_hint}; or declare the PRIMARY KEY and set 'changelog-mode' = 'upsert'.",
            )

    def _check_sent(self, name: str, values: Values, messages: Ints, transactions: Transactions) -> None:
        missing = np.flatnonzero(values.lengths == UNCHANGED)
        if len(missing):
            raise ConnectorError(
                f"Table '{self.name}', column '{name}': an update{_where(transactions, messages[missing[0]])}"
                " left a large value as it was, and the server does not send such a value again.",
                hint=f"{self._full_hint}; or do not read the column.",
            )

    @property
    def _full_hint(self) -> str:
        return f"ALTER TABLE {self.name} REPLICA IDENTITY FULL, and start the job with a slot of its own"


def _where(transactions: Transactions, number: int) -> str:
    return f" in the transaction at {shown(int(transactions.commits[number]))}"


def _relation(message: bytes) -> Relation:
    _, at = _text(message, _text(message, 5)[1])
    identity, count = chr(message[at]), int.from_bytes(message[at + 1 : at + 3])
    names: list[str] = []
    types: list[int] = []
    keys: list[str] = []
    at += 3
    for _ in range(count):
        name, end = _text(message, at + 1)
        names.append(name)
        keys += [name] if message[at] & 1 else []
        types.append(int.from_bytes(message[end : end + 4]))
        at = end + 8
    return Relation(tuple(names), tuple(types), frozenset(keys), identity == _FULL)


def _text(message: bytes, at: int) -> tuple[str, int]:
    end = message.index(0, at)
    return message[at:end].decode(), end + 1
