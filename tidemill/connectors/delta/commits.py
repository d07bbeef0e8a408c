"""Commits an epoch to a Delta table, exactly once.

1. Open the newest version of the table.
2. Ask it for the last epoch that it has of this sink (Delta's application transactions). If that is this
   epoch or a later one, all is done.
3. Commit: the files that come, the files that go, and the epoch, as the next version.
4. If somebody else has made that version meanwhile, or if the outcome is not known: from 1, until a minute
   has passed.

The question and the commit are about one version of the table: the commit is only taken as the next one. So
two processes of one job cannot both commit an epoch, and what was decided by the files of that version still
holds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction

from tidemill.connectors.delta.table import DeltaPlace
from tidemill.connectors.lakehouse.files import DataFile
from tidemill.errors import CommitUnknownError, StateError

_PATIENCE = 60.0
_PAUSE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """``added``: as tokens have them; ``removed``: files of the version."""

    added: Sequence[dict[str, Any]]
    removed: Sequence[DataFile] = ()


Decide = Callable[[DeltaTable], Change]
"""What an epoch changes in this version; ConnectorError where that cannot be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaCommits:
    """``sink``: its name in the table, stable over restarts."""

    place: DeltaPlace
    sink: str

    def recorded(self, table: DeltaTable) -> int:
        """The last epoch that the table has; 0 for none."""
        return int(table.transaction_version(self.sink) or 0)

    def check_newer(self, epoch: int) -> None:
        """StateError where the table already has the epoch that the job is to write next."""
        recorded = self.recorded(self.place.opened())
        if recorded >= epoch:
            raise StateError(
                f"Delta table '{self.place.name}' has the job's epochs up to {recorded}, but the checkpoint"
                f" has none after {epoch - 1}: it is older than the table.",
                hint="Restore the table to the version of that epoch, or start the job with a checkpoint"
                " directory of its own.",
            )

    def commit(self, epoch: int, decide: Decide) -> None:
        deadline, unknown = time.monotonic() + _PATIENCE, False
        while True:
            table = self.place.opened()  # step 1
            if self.recorded(table) >= epoch:  # step 2
                return
            change = decide(table)
            try:
                self._write(table, epoch, change)  # step 3
                return
            except CommitFailedError as e:
                failed: Exception = e
            except (DeltaError, OSError) as e:
                failed, unknown = e, True
            if time.monotonic() > deadline:  # step 4
                raise self._given_up(failed, epoch, unknown=unknown)
            time.sleep(_PAUSE)

    def _write(self, table: DeltaTable, epoch: int, change: Change) -> None:
        table.create_write_transaction(
            [*map(_add, change.added), *map(_remove, change.removed)],
            "append",
            table.schema(),
            table.metadata().partition_columns,
            commit_properties=CommitProperties(
                app_transactions=[Transaction(self.sink, epoch)], max_commit_retries=0
            ),
        )

    def _given_up(self, error: Exception, epoch: int, *, unknown: bool) -> Exception:
        failed = self.place.failure(error)
        if not unknown:
            return failed
        return CommitUnknownError(
            f"{failed.message}. It is not known whether the table has epoch {epoch}.",
            hint="Start the job again once the store is back: it finds out; nothing is lost or doubled.",
        )


def _add(file: dict[str, Any]) -> AddAction:
    columns = file["columns"]
    stats = {
        "numRecords": file["rows"],
        "minValues": {name: low for name, (low, _, _) in columns.items() if low is not None},
        "maxValues": {name: high for name, (_, high, _) in columns.items() if high is not None},
        "nullCount": {name: nulls for name, (_, _, nulls) in columns.items() if nulls is not None},
    }
    return AddAction(
        path=file["path"],
        size=file["size"],
        partition_values=file["partition"],
        modification_time=_now(),
        data_change=True,
        stats=json.dumps(stats),
    )


def _remove(file: DataFile) -> RemoveAction:
    return RemoveAction(file.path, True, _now(), file.size)


def _now() -> int:
    return time.time_ns() // 1_000_000
