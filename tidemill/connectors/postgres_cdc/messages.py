"""Messages of the plug-in ``pgoutput`` (protocol version 1) as rows that change a table.

A transaction is ``B`` (begin: log position of its commit record, time, id), changes, and ``C`` (commit). A
change is ``I`` (insert), ``U`` (update) or ``D`` (delete) of a table. The server sends ``R`` (relation),
which names the table's columns, before the table's first change. All messages of one kind are decoded at
once. If a change is ambiguous, decoding raises an error; it never guesses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.rowkind import RowKind
from tidemill.connectors.postgres_cdc.offsets import ChangeRange, lsn_text
from tidemill.connectors.postgres_cdc.tuples import NOT_SENT, ByteBuffer, Ints, Values
from tidemill.errors import ConnectorError, NotSupportedError

_BEGIN, _RELATION, _INSERT, _UPDATE, _DELETE, _TRUNCATE = (ord(letter) for letter in "BRIUDT")
_KEY, _OLD, _NEW = (ord(letter) for letter in "KON")
_FULL = "f"
_EPOCH_MICROS = 946_684_800_000_000
"""The server counts from the year 2000."""


@dataclass(frozen=True, slots=True)
class Relation:
    """``names`` of all columns, in order; ``keys``: the columns of the table's replica identity."""

    names: tuple[str, ...]
    types: tuple[int, ...]
    keys: frozenset[str]
    full: bool


@dataclass(frozen=True, slots=True)
class Transactions:
    """The transaction of each message: ``commits`` is the LSN of its commit record, ``times`` its commit time
    in microseconds, ``selected`` whether the range to read contains the transaction."""

    commits: Ints
    times: Ints
    selected: Any


@dataclass(frozen=True, slots=True)
class Rows:
    """``sequence``: twice the number of the message, plus 1 for a row that an update adds. ``kinds``: values
    of RowKind. ``columns``: strings, by column name."""

    sequence: Ints
    kinds: Any
    times: Ints
    columns: dict[str, pa.Array]


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of one ``kind``; ``numbers`` are those of their messages. ``is_after``: an update adds the
    rows."""

    numbers: Ints
    kind: RowKind
    columns: list[Values]
    is_after: bool = False


@dataclass(slots=True, kw_only=True)
class Changes:
    """Decodes the changes of ``table`` (an oid; its name is ``name``) in the range ``part``. ``columns``:
    names of the columns to read. ``keys``: the primary key of an upsert changelog; () if each change has the
    whole old row.

    Call ``rows`` with all messages in order, in as many pieces as you like.
    """

    table: int
    name: str
    part: ChangeRange
    columns: Sequence[str]
    keys: tuple[str, ...]
    _relation: Relation | None = None
    _last: tuple[int, int, bool] = (0, 0, False)
    _passed: int = 0

    def rows(self, messages: list[bytes]) -> Iterator[Rows]:
        buffer = ByteBuffer(messages)
        letters = buffer.letters(buffer.starts)
        transactions = self._transactions(buffer, letters)
        truncates = np.flatnonzero((letters == _TRUNCATE) & transactions.selected)
        self._check_truncated(buffer, truncates, transactions)
        of_table = np.isin(letters, (_INSERT, _UPDATE, _DELETE, _RELATION))
        of_table[of_table] = buffer.ints(buffer.starts[of_table] + 1) % (1 << 32) == self.table
        changes = of_table & (letters != _RELATION) & transactions.selected
        numbers = self._passed + np.cumsum(changes) - 1
        self._passed += int(changes.sum())
        for start, end in self._stretches(messages, np.flatnonzero(of_table & (letters == _RELATION))):
            in_stretch = np.zeros(len(messages), bool)
            in_stretch[start:end] = True
            selected = np.flatnonzero(in_stretch & changes)
            if len(selected):
                yield self._changed(buffer, letters, selected, numbers, transactions)

    def _transactions(self, buffer: ByteBuffer, letters: Any) -> Transactions:
        """A transaction may continue in the next piece of messages."""
        begins = np.flatnonzero(letters == _BEGIN)
        offsets = buffer.starts[begins]
        commits, times, xids = (
            buffer.longs(offsets + 1),
            buffer.longs(offsets + 9),
            buffer.ints(offsets + 17) % (1 << 32),
        )
        part = self.part
        selected = (commits >= part.start) & (commits < part.end)
        if part.seen is not None:
            selected &= ~part.seen.holds(xids, commits)
        transaction = np.cumsum(letters == _BEGIN)
        commits, times, selected = (
            np.concatenate([[before], now])
            for before, now in zip(self._last, (commits, times + _EPOCH_MICROS, selected), strict=True)
        )
        self._last = (int(commits[-1]), int(times[-1]), bool(selected[-1]))
        return Transactions(commits[transaction], times[transaction], selected[transaction].astype(bool))

    def _check_truncated(self, buffer: ByteBuffer, numbers: Ints, transactions: Transactions) -> None:
        for number in numbers:
            offset = int(buffer.starts[number])
            count = int(buffer.ints(np.array([offset + 1]))[0])
            if self.table in buffer.ints(offset + 6 + 4 * np.arange(count)) % (1 << 32):
                raise NotSupportedError(
                    f"Table '{self.name}' was emptied by TRUNCATE{_where(transactions, number)}: the log does"
                    " not say which rows it had.",
                    hint="Start the job with a checkpoint directory and a slot of its own, or use DELETE.",
                )

    def _stretches(self, messages: list[bytes], relations: Ints) -> Iterator[tuple[int, int]]:
        """Ranges of message numbers, each from one ``R`` message of the table to the next."""
        ends = [*relations, len(messages)]
        yield 0, ends[0]
        for at, end in zip(relations, ends[1:], strict=True):
            self._relation = _relation(messages[at])
            yield at, end

    def _check(self, relation: Relation) -> None:
        """Raises if the table then did not have the declared columns and key."""
        for name in sorted({*self.columns, *self.keys}):
            if name not in relation.names:
                raise self._altered(name, "the table had no such column")
            if relation.types[relation.names.index(name)] != self.part.columns[name][1]:
                raise self._altered(name, "it had another type")
        if self.keys and not relation.full and relation.keys != frozenset(self.keys):
            raise ConnectorError(
                f"The replica identity of table '{self.name}' is ({', '.join(sorted(relation.keys))}), but"
                " the"
                f" declared PRIMARY KEY is ({', '.join(self.keys)}).",
                hint=f"Declare the same key, or: ALTER TABLE {self.name} REPLICA IDENTITY FULL.",
            )

    def _altered(self, column: str, difference: str) -> ConnectorError:
        return ConnectorError(
            f"Table '{self.name}', column '{column}': at the time of the next changes to read, {difference}.",
            hint="Start the job with a checkpoint directory and a slot of its own.",
        )

    def _changed(
        self, buffer: ByteBuffer, letters: Any, selected: Ints, numbers: Ints, transactions: Transactions
    ) -> Rows:
        """The rows of the ``selected`` messages, in order."""
        assert self._relation is not None  # the server describes a table before it changes it
        self._check(self._relation)
        parts = [
            *self._inserts(buffer, selected[letters[selected] == _INSERT]),
            *self._updates(buffer, selected[letters[selected] == _UPDATE], transactions),
            *self._deletes(buffer, selected[letters[selected] == _DELETE], transactions),
        ]
        messages = np.concatenate([p.numbers for p in parts])
        is_after = np.concatenate([np.full(len(p.numbers), p.is_after) for p in parts])
        kinds = np.concatenate([np.full(len(p.numbers), p.kind, np.int8) for p in parts])
        sequence = 2 * numbers[messages] + is_after
        order = np.argsort(sequence)
        columns = {}
        for name in self.columns:
            index = self._relation.names.index(name)
            values = Values.joined([p.columns[index] for p in parts]).take(order)
            self._check_sent(name, values, messages[order], transactions)
            columns[name] = buffer.texts(values)
        return Rows(sequence[order], kinds[order], transactions.times[messages[order]], columns)

    def _inserts(self, buffer: ByteBuffer, numbers: Ints) -> Iterator[_Part]:
        yield _Part(numbers, RowKind.INSERT, self._tuple(buffer, buffer.starts[numbers] + 6)[0])

    def _updates(self, buffer: ByteBuffer, numbers: Ints, transactions: Transactions) -> Iterator[_Part]:
        """Decodes updates. A message may have the old row, or its key, before the new row."""
        offsets = buffer.starts[numbers] + 5
        image_marks = buffer.letters(offsets)
        self._check_before(image_marks, numbers, transactions)
        new_only = image_marks == _NEW
        yield _Part(
            numbers[new_only], RowKind.UPDATE_AFTER, self._tuple(buffer, offsets[new_only] + 1)[0], True
        )
        old, end = self._tuple(buffer, offsets[~new_only] + 1)
        has_old_row = image_marks[~new_only] == _OLD
        new = [
            after.or_else(Values(before.starts, np.where(has_old_row, before.lengths, NOT_SENT)))
            for after, before in zip(self._tuple(buffer, end + 1)[0], old, strict=True)
        ]
        yield _Part(numbers[~new_only], RowKind.UPDATE_AFTER, new, True)
        if not self.keys:
            yield _Part(numbers[~new_only], RowKind.UPDATE_BEFORE, old)
            return
        key_changed = self._keys_changed(buffer, old, new)
        yield _Part(
            numbers[~new_only][key_changed], RowKind.DELETE, [column.take(key_changed) for column in old]
        )

    def _keys_changed(self, buffer: ByteBuffer, old: list[Values], new: list[Values]) -> Any:
        """Whether each update changed the key of its row."""
        assert self._relation is not None
        key_changed = np.zeros(len(old[0].starts), bool)
        for name in self.keys:
            index = self._relation.names.index(name)
            is_different = pc.not_equal(buffer.texts(old[index]), buffer.texts(new[index]))
            key_changed |= is_different.fill_null(False).to_numpy(zero_copy_only=False)
        return key_changed

    def _deletes(self, buffer: ByteBuffer, numbers: Ints, transactions: Transactions) -> Iterator[_Part]:
        offsets = buffer.starts[numbers] + 5
        self._check_before(buffer.letters(offsets), numbers, transactions)
        yield _Part(numbers, RowKind.DELETE, self._tuple(buffer, offsets + 1)[0])

    def _tuple(self, buffer: ByteBuffer, offsets: Ints) -> tuple[list[Values], Ints]:
        """The columns of the rows at ``offsets``, and where the rows end. A row begins with its column
        count."""
        assert self._relation is not None
        return buffer.pgoutput_rows(offsets + 2, len(self._relation.names))

    def _check_before(self, image_marks: Any, numbers: Ints, transactions: Transactions) -> None:
        """Raises if a change lacks the old row although changes are not by key."""
        if self.keys:
            return
        without_old_row = np.flatnonzero(image_marks != _OLD)
        if len(without_old_row):
            raise ConnectorError(
                f"Table '{self.name}': a change{_where(transactions, numbers[without_old_row[0]])} lacks the"
                " old"
                " row, because the replica identity was not FULL then.",
                hint=f"{self._full_hint}; or declare the PRIMARY KEY and set 'changelog-mode' = 'upsert'.",
            )

    def _check_sent(self, name: str, values: Values, messages: Ints, transactions: Transactions) -> None:
        not_sent = np.flatnonzero(values.lengths == NOT_SENT)
        if len(not_sent):
            raise ConnectorError(
                f"Table '{self.name}', column '{name}': an"
                f" update{_where(transactions, messages[not_sent[0]])}"
                " did not change a large value, and the server sends large values only if they change.",
                hint=f"{self._full_hint}; or do not read the column.",
            )

    @property
    def _full_hint(self) -> str:
        return f"ALTER TABLE {self.name} REPLICA IDENTITY FULL, and start the job with a slot of its own"


def _where(transactions: Transactions, number: int) -> str:
    return f" in the transaction at {lsn_text(int(transactions.commits[number]))}"


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
