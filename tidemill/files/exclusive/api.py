"""What putting a file exclusively means, whatever the file system."""

from __future__ import annotations

from typing import Protocol


class OutcomeUnknownError(OSError):
    """The file may be there, or come to be there yet."""


class Exclusive(Protocol):
    def put(self, relative: str, data: bytes) -> None:
        """FileExistsError: there is such a file. OutcomeUnknownError: it may have been put. Other OSErrors:
        it was not."""
        ...
