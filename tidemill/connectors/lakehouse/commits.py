"""Commits an epoch to a table of versions, exactly once.

1. Open the newest version of the table.
2. Ask it for the last epoch that it has of this sink. If that is this epoch or a later one, all is done.
3. Commit: the files that come, the files that go, and the epoch, as the next version.
4. If somebody else has made that version meanwhile, or if the outcome is not known: from 1, until a minute
   has passed.

The question and the commit are about one version of the table: the commit is only taken as the next one. So
two processes of one job cannot both commit an epoch, and what was decided by the files of that version still
holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tidemill.connectors.lakehouse.api import Change, ConflictError, Target, UnclearError, Version
from tidemill.errors import CommitUnknownError, StateError

_PATIENCE = 60.0
_PAUSE = 0.1

Decide = Callable[[Version], Change]
"""What an epoch changes in this version; ConnectorError where that cannot be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commits:
    """``table``: its name, for people; ``sink``: the sink's name in the table, stable over restarts."""

    target: Target
    table: str
    sink: str

    def check_newer(self, epoch: int) -> None:
        """StateError where the table already has the epoch that the job is to write next."""
        recorded = self.target.newest().recorded(self.sink)
        if recorded >= epoch:
            raise StateError(
                f"Table '{self.table}' has the job's epochs up to {recorded}, but the checkpoint has none"
                f" after {epoch - 1}: it is older than the table.",
                hint="Take the table back to the version of that epoch, or start the job with a checkpoint"
                " directory of its own.",
            )

    def commit(self, epoch: int, decide: Decide) -> None:
        deadline, unknown = time.monotonic() + _PATIENCE, False
        while True:
            version = self.target.newest()  # step 1
            if version.recorded(self.sink) >= epoch:  # step 2
                return
            try:
                version.commit(self.sink, epoch, decide(version))  # step 3
                return
            except ConflictError as e:
                failed: Exception = e
            except UnclearError as e:
                failed, unknown = e, True
            if time.monotonic() > deadline:  # step 4
                raise self._given_up(failed, epoch, unknown=unknown)
            time.sleep(_PAUSE)

    def _given_up(self, error: Exception, epoch: int, *, unknown: bool) -> Exception:
        failed = self.target.failure(error)
        if not unknown:
            return failed
        return CommitUnknownError(
            f"{failed.message}. It is not known whether the table has epoch {epoch}.",
            hint="A job finds out when you start it again once the store is back; nothing is lost or doubled."
            " After a statement, look whether the table has its rows: it has all of them or none.",
        )
