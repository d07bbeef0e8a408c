"""An epoch's staged messages, and those of the epochs that may yet have to be sent again.

A cluster may lose a transaction whose commit it has acknowledged. So the files of an epoch stay after its
commit. They go once a later question for the recorded number, which each epoch asks anyway, has shown it.

1. Before an epoch is sent, a note in its directory says which files it has: the commit record that says so,
   too, is replaced by the next one.
2. The next epoch with messages asks for the recorded number. The files up to that number go.
3. Epochs behind that number are sent again, in their order, before the new one.

Cost: a small file for each epoch, and the staged files of one epoch more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, count, repeat
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from tidemill.connectors.kafka.staging import DELETES, UPSERTS
from tidemill.errors import ConnectorError
from tidemill.files.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.connectors.kafka.sending import Record

_NOTE = "sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one sink sends of an epoch. ``tasks``: for each task what its files are, and their names below
    ``directory`` of the storage at ``location``; ``partitioner`` and ``ordered`` as of KafkaSink."""

    topic: str
    partitioner: str
    ordered: bool
    location: str
    directory: str
    tasks: Sequence[Sequence[tuple[str, str]]]

    def records(self) -> Iterator[Record]:
        """The staged messages in the order of sending: unless tasks are in order, deletes come first."""
        files = [(number, what, name) for number, task in enumerate(self.tasks) for what, name in task]
        if not self.ordered:
            files = [f for f in files if f[1] == DELETES] + [f for f in files if f[1] == UPSERTS]
        turns = count()
        for number, _, name in files:
            chosen = {"fixed": repeat(number), "round-robin": turns}.get(self.partitioner, repeat(None))
            for batch in self._read(name):
                keys, values, millis, headers = (_listed(column) for column in batch.columns)
                topics = repeat(self.topic, batch.num_rows)
                yield from zip(topics, keys, values, chosen, millis, headers, strict=False)

    def remove(self) -> None:
        Storage(self.location).remove_directory(self.directory)

    def _read(self, name: str) -> Iterator[pa.RecordBatch]:
        try:
            with (
                Storage(self.location).open(f"{self.directory}/{name}") as file,
                pa.ipc.open_stream(file) as batches,
            ):
                yield from batches
        except OSError as e:
            raise ConnectorError(
                f"Rows for topic '{self.topic}' are staged no more: {e}",
                hint="Set 'sink.staging-path' to a directory that outlives the machine's restarts.",
            ) from None


Shares = Sequence[Share]
"""Of all sinks that are sent together."""


def records_of(shares: Shares) -> Iterator[Record]:
    return chain.from_iterable(share.records() for share in shares)


def topics_of(shares: Shares) -> list[str]:
    return list(dict.fromkeys(share.topic for share in shares))


@dataclass(slots=True, kw_only=True)
class Kept:
    """Epochs of a job that were sent, and that nobody has seen in the cluster yet. ``directory``: of the sink
    that sends for all of its group; ``name``: the transactional id under which they were sent."""

    storage: Storage
    directory: str
    name: str
    _epochs: dict[int, Shares] | None = None

    @classmethod
    def of_last(cls, storage: Storage, directory: str) -> Self | None:
        """What was sent under the id of the last of all epochs; None if none was."""
        for number in reversed(_numbers(storage, directory)):
            if storage.stat(note_of(directory, number)) is not None:
                name = json.loads(storage.read_bytes(note_of(directory, number)))["name"]
                return cls(storage=storage, directory=directory, name=name)
        return None

    def epochs(self) -> dict[int, Shares]:
        """In their order; listed in the storage when they are first asked for."""
        if self._epochs is None:
            found = ((n, self._noted(n)) for n in _numbers(self.storage, self.directory))
            self._epochs = {number: shares for number, shares in found if shares is not None}
        return self._epochs

    def add(self, epoch: int, shares: Shares) -> None:
        told = {"name": self.name, "shares": [asdict(share) for share in shares]}
        data = json.dumps(told).encode()
        self.storage.publish(self._note(epoch), lambda stream: stream.write(data))
        self.epochs()[epoch] = shares

    def seen(self, recorded: int) -> None:
        """Readers of the cluster see the epochs up to this one: their files go."""
        for epoch in [e for e in self.epochs() if e <= recorded]:
            for share in self.epochs().pop(epoch):
                share.remove()

    def forget(self) -> None:
        """Files may have gone: they are listed again."""
        self._epochs = None

    def _noted(self, epoch: int) -> Shares | None:
        """None for an epoch that was never sent, or under another id."""
        if self.storage.stat(self._note(epoch)) is None:
            return None
        told = json.loads(self.storage.read_bytes(self._note(epoch)))
        return [Share(**share) for share in told["shares"]] if told["name"] == self.name else None

    def _note(self, epoch: int) -> str:
        return note_of(self.directory, epoch)


def _numbers(storage: Storage, directory: str) -> list[int]:
    """The epochs that have files, in their order."""
    return sorted(int(name) for name in storage.directories(directory) if name.isdecimal())


def note_of(directory: str, epoch: int) -> str:
    """The file that says how an epoch is sent; without it the epoch is not sent again."""
    return f"{directory}/{epoch}/{_NOTE}"


def _listed(column: pa.Array) -> Iterable[Any]:
    """Nothing is asked of each row where there is nothing."""
    return repeat(None) if column.null_count == len(column) else column.to_pylist()
