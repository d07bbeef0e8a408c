"""Record files of a checkpoint: put if absent, durable, whole or not there.

Of two jobs that write the same record only the first succeeds (see ``files.exclusive``). Reading says exactly
what is wrong with a file that is no record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from tidemill.errors import NOTHING_COMMITTED, CommitUnknownError, OwnershipError, StateError
from tidemill.files.exclusive import Exclusive, OutcomeUnknownError, exclusive, is_temporary
from tidemill.files.storage import Storage
from tidemill.state.record import Reader, decode_record, encode_record

FORMAT_VERSION = 5


def _read_3(fields: dict[str, Any]) -> dict[str, Any]:
    """Format 4 says by which rules a job's ids were made, and facts that its state depends on (``identity``):
    a job record of format 3 has neither."""
    return {**fields, "rules": 3} if "fingerprint" in fields else fields


def _read_4(fields: dict[str, Any]) -> dict[str, Any]:
    """Format 5 says what the state of operators is made of (``operator_schema``)."""
    return fields


OLDER: Mapping[int, Reader] = {3: _read_3, 4: _read_4}
"""Readers of the formats before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Names are relative to ``storage``, the checkpoint directory. Failures are StateErrors."""

    storage: Storage
    exclusive: Exclusive

    @classmethod
    def open(cls, storage: Storage) -> Self:
        """NotSupportedError or SetupError where records cannot be put there."""
        return cls(storage=storage, exclusive=exclusive(storage))

    def read(self, name: str, what: str) -> dict[str, Any] | None:
        """The fields of the record, None if there is none; StateError where it is damaged or of no known
        form."""
        what = f"{what} '{self.storage.full_path(name)}'"
        try:
            data = self.storage.read_bytes(name)
        except FileNotFoundError:
            return None
        except OSError as e:
            raise StateError(f"Cannot read {what}: {said(e)}") from e
        return decode_record(data, FORMAT_VERSION, what, OLDER)

    def put(self, name: str, fields: dict[str, Any], version: int = FORMAT_VERSION) -> None:
        """Writes a record that must not be there; it is durable when this returns.

        StateError: nothing was written. CommitUnknownError: it may have been.
        """
        path = self.storage.full_path(name)
        try:
            self.exclusive.put(name, encode_record(version, fields))
        except FileExistsError as e:
            raise OwnershipError(
                f"The record '{path}' already exists: another job has written to this checkpoint directory",
                hint="Stop one of the two jobs, or give it a directory of its own.",
            ) from e
        except OutcomeUnknownError as e:
            raise CommitUnknownError(
                f"It is not known whether '{path}' was written: {said(e)}",
                hint="Start the job again once the cause is gone. The job then finds out, and continues.",
            ) from e
        except OSError as e:
            raise StateError(f"Cannot write '{path}': {said(e)}", hint=NOTHING_COMMITTED) from e

    def exists(self, name: str) -> bool:
        try:
            return self.storage.stat(name) is not None
        except OSError as e:
            raise StateError(
                f"Cannot look for '{self.storage.full_path(name)}': {said(e)}", hint=NOTHING_COMMITTED
            ) from e

    def remove(self, name: str) -> None:
        """Removes a record; one that is gone already is fine."""
        try:
            self.storage.remove(name)
        except OSError as e:
            raise StateError(f"Cannot remove '{self.storage.full_path(name)}': {said(e)}") from e

    def numbered(self, folder: str, suffix: str) -> list[int]:
        """The numbers n of the records ``<folder>/<n><suffix>``, ascending."""
        return sorted(number for number, _ in self.all_numbered(folder, (suffix,)))

    def all_numbered(self, folder: str, suffixes: Sequence[str]) -> Iterator[tuple[int, str]]:
        """The number and the name of each record ``<folder>/<n><suffix>``, in any order."""
        for entry in self._listed(folder):
            name = entry.path.rpartition("/")[2]
            numbers = (name.removesuffix(suffix) for suffix in suffixes if name.endswith(suffix))
            number = next((n for n in numbers if n.isdigit()), None)
            if number is not None:
                yield int(number), entry.path

    def remove_temporaries(self, folder: str) -> None:
        """Takes away what records of killed processes left; by the owner of the directory only."""
        for entry in self._listed(folder):
            if is_temporary(entry.path):
                self.remove(entry.path)

    def _listed(self, folder: str) -> list[Any]:
        try:
            return list(self.storage.files(folder, recursive=False))
        except OSError as e:
            raise StateError(f"Cannot list '{self.storage.full_path(folder)}': {said(e)}") from e


def said(error: OSError) -> str:
    """What a file system says was wrong; of an object store's many lines the first."""
    return error.strerror or str(error).partition("\n")[0]
