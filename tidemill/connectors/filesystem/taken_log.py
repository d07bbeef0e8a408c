"""The log of the files that a job has taken, beside its checkpoint, so that offsets stay short.

Segment k holds the files ``k * SEGMENT`` to ``(k + 1) * SEGMENT`` in the order of taking. It is written once
all of them are committed. A segment depends only on the job's history, so writing it again changes nothing,
and an offset needs only the number of segments. The offset's ``chain`` is a hash over all segments; a lost or
changed segment is an error. Cost of an epoch: its new files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce

from tidemill.connectors.filesystem.offsets import FilePosition, TakenFile
from tidemill.errors import NOTHING_COMMITTED, StateError
from tidemill.files.storage import Storage

SEGMENT = 64


@dataclass(frozen=True, slots=True)
class TakenFiles:
    """The files taken up to a position, each as the job last took it."""

    sealed: dict[str, TakenFile]
    recent: dict[str, TakenFile]

    def get(self, path: str) -> TakenFile | None:
        return self.recent.get(path) or self.sealed.get(path)

    def has(self, path: str) -> bool:
        return path in self.recent or path in self.sealed


@dataclass(slots=True)
class TakenLog:
    """``storage``: the job's folder for this source; None: offsets keep all their files themselves."""

    storage: Storage | None = None
    _sealed: int = 0
    _chain: str = ""
    _known: dict[str, TakenFile] = field(default_factory=dict)

    def files_at(self, position: FilePosition) -> TakenFiles:
        self._load(position)
        return TakenFiles(self._known, {file.path: file for file in position.files})

    def sealing(self, position: FilePosition) -> FilePosition:
        """``position``, with its earliest files moved into segments while they fill a segment. ``position``
        must be committed."""
        if self.storage is None:
            return position
        self._load(position)
        while len(position.files) > SEGMENT:
            full = position.files[:SEGMENT]
            text = json.dumps([f.to_json() for f in full]).encode()
            self._write(position.sealed // SEGMENT, text)
            chain, count = _chained(position.chain, text), position.sealed + SEGMENT
            position = replace(position, sealed=count, chain=chain, files=position.files[SEGMENT:])
            self._known.update((file.path, file) for file in full)
            self._sealed, self._chain = count, chain
        return position

    def taken(self, position: FilePosition) -> list[TakenFile]:
        """All files up to a position, in the order of taking. Cost: reads all segments."""
        return [*self._files(position), *position.files]

    def _load(self, position: FilePosition) -> None:
        """Reads the segments if memory holds another history, as at the start of a job."""
        if (self._sealed, self._chain) == (position.sealed, position.chain):
            return
        files = {file.path: file for file in self._files(position)}
        self._known, self._sealed, self._chain = files, position.sealed, position.chain

    def _files(self, position: FilePosition) -> Iterator[TakenFile]:
        """The files of all segments."""
        texts = [self._read(number) for number in range(position.sealed // SEGMENT)]
        if reduce(_chained, texts, "") != position.chain:
            raise _damaged("have been changed", self.storage)
        return (TakenFile.from_json(entry) for text in texts for entry in json.loads(text))

    def _read(self, number: int) -> bytes:
        if self.storage is None:
            raise _damaged("are not at hand", None)
        try:
            return self.storage.read_bytes(_name(number))
        except OSError as e:
            raise _damaged(f"cannot be read: {e}", self.storage) from None

    def _write(self, number: int, text: bytes) -> None:
        assert self.storage is not None
        try:
            self.storage.publish(_name(number), lambda stream: stream.write(text))
        except OSError as e:
            raise StateError(
                f"Cannot write the record of files read to {self.storage.location}: {e}",
                hint=NOTHING_COMMITTED,
            ) from None


def _name(number: int) -> str:
    return f"taken-{number:06d}.json"


def _chained(chain: str, text: bytes) -> str:
    return hashlib.blake2b(chain.encode() + text, digest_size=16).hexdigest()


def _damaged(problem: str, storage: Storage | None) -> StateError:
    location = f" in '{storage.location}'" if storage else ""
    return StateError(
        f"The records of the files that the job has read{location} {problem}.",
        hint="Restore the whole checkpoint directory, or start the job with a new one.",
    )
