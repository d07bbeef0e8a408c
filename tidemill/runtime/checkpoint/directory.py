"""The checkpoint directory of one job: its identity, plan records, commit records, and who owns it.

A folder of a local or mounted disk, or a place in an object store, by the same calls.

Layout::

    job.json                   identity: digests of the plan's nodes, and what state is made of
    job.<n>.json               that of the n-th query that has taken the state over; of those that have
                               committed an epoch the last one counts
    origin.json                the savepoint that the directory is filled from (see ``origin``)
    lock, owners/<n>           held while a process runs the job (see ``ownership``)
    committed.json             there has been a first commit
    epochs/<n>.plan.json       intent: the offset ranges of epoch n and its processing time
    epochs/<n>.commit.json     fact: epoch n happened; offsets, manifests, sink tokens
    epochs/<n>.published.json  all sinks have published epoch n; left by a job that stops
    state/<operator>/...       runs and manifests (see tidemill.state)
    sources/<source>/...       what sources keep of their own (see connectors.api.Source)
    replays/...                what a query gives from the beginning on, while a job gets another one

Guarantee: a record file is either absent or whole, and is never replaced. Epoch n is committed iff
``<n>.commit.json`` exists. Records older than the last commit are removed once its sinks have published;
nothing that the last commit names is ever removed. Where records are missing that must have been there the
job is refused: from the beginning it would show everything twice.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

from tidemill.errors import StateError
from tidemill.files.local_disk import sync
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.epochs import EpochCommit, EpochPlan
from tidemill.runtime.checkpoint.evolution import evolution
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.ownership import Ownership
from tidemill.runtime.checkpoint.records import Records, said
from tidemill.state.record import START_AGAIN, damaged

T = TypeVar("T")
_JOB = "the job record"
_IDENTITY, _EPOCHS = "job.json", "epochs"
ORIGIN, SHOWN = "origin.json", "committed.json"
_PLAN, _COMMIT, _PUBLISHED = ".plan.json", ".commit.json", ".published.json"
_STATE, _SOURCES = "state", "sources"
REPLAYS = "replays"
FILLED = (_EPOCHS, _STATE, _SOURCES)
"""The folders that a job's own progress lies in."""
FOLDERS = (*FILLED, "owners", REPLAYS)
"""All that a job keeps lies in these and in files beside them; other folders there are other jobs'."""


class CheckpointDirectory:
    """Records below ``root``; ``fault`` is called at every numbered commit step. ``run``: what names of state
    files have of the run of the job, if not the owner's number."""

    def __init__(
        self, root: Storage, fault: Callable[[str], None] = lambda step: None, *, run: str = ""
    ) -> None:
        self.root = root
        self.fault = fault
        self._run = run
        self._ownership: Ownership | None = None
        self._shown = False
        self._forgotten = False

    @cached_property
    def _records(self) -> Records:
        return Records.open(self.root)

    @property
    def state_root(self) -> Storage:
        return self.root.below(_STATE)

    @property
    def run_id(self) -> str:
        """No other run of the job has it; state files bear it in their names."""
        return self._run or (str(self._ownership.token) if self._ownership is not None else "0")

    @property
    def source_root(self) -> Storage:
        """Where sources keep records of their own."""
        return self.root.below(_SOURCES)

    @property
    def is_owned(self) -> bool:
        """Whether nobody else has taken the directory since: what lies there may be another job's now."""
        return self._ownership is not None and self._ownership.is_newest

    @property
    def is_locked(self) -> bool:
        """Whether a lock says that no owner before still writes here; an object store has none."""
        return self._ownership is not None and self._ownership.is_locked

    def make(self, identity: JobIdentity, commit: EpochCommit | None) -> None:
        """The records of a job after an epoch, where there are none; nobody runs it here."""
        self._make()
        if commit is not None:
            self.put_first(commit)
        self._put(_IDENTITY, asdict(identity))

    def put_first(self, commit: EpochCommit) -> None:
        """The epoch that a job begins after."""
        self.write_commit(commit)
        self.begin_showing()

    def open(
        self,
        identity: JobIdentity,
        fill: Callable[[Records], None] | None = None,
        *,
        drops: bool = False,
    ) -> JobIdentity:
        """Takes the directory and checks or writes the identity; returns the one that it has from now on.
        ``fill`` puts what the job begins with into a directory that has no job. ``drops``: state of
        operators that the query lacks may go.

        Raises StateError: the directory is not writable, is in use, or has state that the query cannot take
        over.
        """
        try:
            self._make()
            self._ownership = Ownership.take(self._records)
            self.root.remove_directory(REPLAYS)
            for folder in ("", _EPOCHS) if self.root.has_appends else ():
                self._records.remove_temporaries(folder)
            if fill is not None and self.is_new:
                fill(self._records)
                self._put(_IDENTITY, asdict(identity))
            return self._identified(identity, drops)
        except OSError as e:
            self.close()
            raise StateError(
                f"The checkpoint directory '{self.root.full_path('')}' cannot be used: {said(e)}",
                hint="It must be a directory that this user can write to.",
            ) from e
        except BaseException:
            self.close()
            raise

    def take(self) -> JobIdentity:
        """Takes the directory of a job as it is, for ``switch``. StateError if it has none or is in use."""
        try:
            self._ownership = Ownership.take(self._records)
            stored = self.stored_identity()
            if stored is None:
                raise StateError(f"There is no job in '{self.root.full_path('')}'")
            return stored
        except BaseException:
            self.close()
            raise

    def switch(self, wanted: JobIdentity, commit: EpochCommit) -> None:
        """Gives the job another query, and the state and the output of its next epoch at once: it is that of
        ``wanted`` iff ``commit`` is there."""
        made = replace(wanted, since=commit.epoch)
        known = self._identities()
        if made != known[-1]:
            self._put(_identity(len(known)), asdict(made))
        self.fault("renamed")
        self.write_commit(commit)
        self.fault("switched")

    def check_published(self, last: EpochCommit | None) -> None:
        """StateError where it is not known that the sinks have what ``last`` has given them."""
        if last is not None and any(last.tokens.values()) and not self.is_published(last):
            raise StateError(
                f"Another query cannot take over the state in '{self.root.full_path('')}': whether its last "
                f"epoch {last.epoch} has reached its sinks is not known",
                hint="Start the query that made it once more, and stop it: then it is known.",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives the directory back."""
        if self._ownership is not None:
            self._ownership.close()
            self._ownership = None

    def last_commit(self) -> EpochCommit | None:
        """The newest commit record; StateError if there must be one and there is none."""
        last = self._last_epoch()
        if not last:
            if self._records.exists(SHOWN):
                raise StateError(
                    f"The commit record of the job in '{self.root.full_path('')}' is lost: epochs were "
                    f"committed, but '{self.root.full_path(_EPOCHS)}' has no record. From the beginning the "
                    "job would write everything twice",
                    hint=START_AGAIN,
                )
            return None
        try:
            return self._commit(last)
        except StateError as e:
            epochs = self._records.numbered(_EPOCHS, _COMMIT)
            before = [n for n in epochs if n < last and self._is_whole(n)]
            e.hint = f"The last whole epoch is {before[-1] if before else last - 1}. {e.hint}"
            raise

    def closed(self, last: EpochCommit | None) -> EpochCommit | None:
        """Makes sure that no earlier owner can still commit the epoch that it has planned, and returns the
        last commit. If no lock proves that the owner has ended, it may only be slow. Then an empty epoch is
        committed in place of the planned epoch, whose ranges are planned as the next epoch. The record that
        is put first counts."""
        if self.is_locked:
            return last
        plan = self.planned(last.epoch + 1 if last is not None else 1)
        if plan is None:
            return last
        before = last or EpochCommit(epoch=0, time=0, offsets={}, manifests={}, tokens={})
        empty = replace(before, epoch=plan.epoch, time=plan.time, tokens={})
        try:
            self.write_commit(empty)
        except StateError:
            if not self._records.exists(_name(plan.epoch, _COMMIT)):
                raise
            return self.closed(self._commit(plan.epoch))
        self.write_plan(replace(plan, epoch=plan.epoch + 1))
        return empty

    def begun_as(self) -> str:
        """The id of the job that the directory was being filled for; '' if it was not."""
        begun = self._records.read(ORIGIN, "the record of its origin") if self.is_new else None
        return str((begun or {}).get("job", ""))

    @property
    def is_new(self) -> bool:
        """Whether no job has written to it."""
        return not self._records.exists(_IDENTITY)

    def _last_epoch(self) -> int:
        """The epoch that was committed last, 0 for none. A listing says where to begin to look: it may lack
        the newest."""
        epochs = self._records.numbered(_EPOCHS, _COMMIT)
        last = epochs[-1] if epochs else 0
        while self._records.exists(_name(last + 1, _COMMIT)):
            last += 1
        return last

    def stored_identity(self) -> JobIdentity | None:
        """Whose it is; None of a new one. A query that has taken the state over and has not committed an
        epoch has changed nothing: the state is that of the query before."""
        known = self._identities()
        last = self._last_epoch() if len(known) > 1 else 0
        return next((each for each in reversed(known) if each.since <= last), known[0] if known else None)

    def _identities(self) -> list[JobIdentity]:
        """Those of all queries that the job has been, the first one first."""
        found = []
        for number in itertools.count():
            fields = self._records.read(_identity(number), _JOB)
            if fields is None:
                break
            try:
                found.append(JobIdentity.from_json(fields))
            except (KeyError, TypeError) as e:
                raise damaged(f"{_JOB} '{self.root.full_path(_identity(number))}'", str(e)) from e
        return found

    def _evolve(self, stored: JobIdentity, wanted: JobIdentity, *, publishes: bool = False) -> JobIdentity:
        """From now on the state is that of ``wanted``: one record says so. ``publishes``: its sinks are the
        same, so that they get what the last epoch has given them."""
        last = self.last_commit()
        if not publishes:
            self.check_published(last)
        since = last.epoch + 1 if last is not None else 1
        if not self.is_locked and self.planned(since) is not None:
            since += 1  # That epoch is the owner's before, or nobody's (see ``closed``).
        whole = stored.whole and wanted == stored
        kept = wanted.also_kept(stored)
        made = replace(
            wanted, job_id=stored.job_id, former=stored.former, kept=kept, since=since, whole=whole
        )
        known = self._identities()
        if made != known[-1]:
            self._put(_identity(len(known)), asdict(made))
        return made

    def is_published(self, commit: EpochCommit) -> bool:
        """Whether it is known that the sinks have published the last commit; a crash may leave that open.

        What comes after step 4 says so: the next plan, the removal of the commit before, a note.
        """
        before, epoch = commit.epoch - 1, commit.epoch
        return (
            self._records.exists(_name(epoch, _PUBLISHED))
            or self._records.exists(_name(epoch + 1, _PLAN))
            or (before > 0 and not self._records.exists(_name(before, _COMMIT)))
        )

    def note_published(self, epoch: int) -> None:
        """Notes it for the next start, which then need not look at the sinks."""
        if not self._records.exists(_name(epoch, _PUBLISHED)):
            self._put(_name(epoch, _PUBLISHED), {"epoch": epoch})

    def planned(self, epoch: int) -> EpochPlan | None:
        """The plan record of ``epoch``, if it was written before a crash."""
        return self._record(EpochPlan, _name(epoch, _PLAN), "the plan record", epoch)

    def write_plan(self, plan: EpochPlan) -> None:
        self._put(_name(plan.epoch, _PLAN), _recorded(plan))

    def remove_plan(self, epoch: int) -> None:
        self._records.remove(_name(epoch, _PLAN))

    def write_commit(self, commit: EpochCommit) -> None:
        """The epoch has happened when this returns; it must not have happened before."""
        self._put(_name(commit.epoch, _COMMIT), _recorded(commit))

    def begin_showing(self) -> None:
        """Notes that there has been a commit, before anybody sees what it did."""
        if not self._shown:
            if not self._records.exists(SHOWN):
                self._put(SHOWN, {})
            self._shown = True

    def forget_before(self, epoch: int) -> None:
        """Removes the records of epochs before ``epoch``, looking for them the first time: from then on they
        are those of the epoch before."""
        names = (_name(epoch - 1, kind) for kind in (_PLAN, _COMMIT))
        if not self._forgotten:
            kinds = (_PLAN, _COMMIT, _PUBLISHED)
            names = (name for old, name in self._records.all_numbered(_EPOCHS, kinds) if old < epoch)
        for name in names:
            self._records.remove(name)
        self._forgotten = True

    def _make(self) -> None:
        """Other users cannot look into what is made here: state holds the tables' rows. Object stores have
        no folders."""
        if not self.root.is_local:
            return
        path = Path(self.root.root)
        new = not path.exists()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (_EPOCHS, _STATE, _SOURCES):
            (path / folder).mkdir(mode=0o700, exist_ok=True)
        sync(str(path))
        if new:
            sync(str(path.parent))

    def _identified(self, wanted: JobIdentity, drops: bool) -> JobIdentity:
        stored = self.stored_identity()
        if stored is None:
            if self._records.exists(ORIGIN):
                raise self._half_filled()
            if self._records.numbered(_EPOCHS, _COMMIT) or self._records.exists(SHOWN):
                raise StateError(
                    f"The job record '{self.root.full_path(_IDENTITY)}' is lost: there are epochs, "
                    "but the directory does not say which job they belong to",
                    hint=START_AGAIN,
                )
            self._put(_IDENTITY, asdict(wanted))
            return wanted
        found = evolution(stored, wanted)
        found.check(f"the checkpoint in '{self.root.full_path('')}'", drops=drops)
        if not found.is_same:
            return self._evolve(stored, wanted)
        if stored.whole and not stored.has_same_results(wanted):
            results = {name: getattr(wanted, name) for name in ("sinks", "watermarks", "query")}
            changed = replace(stored, kept=wanted.also_kept(stored), **results)
            return self._evolve(stored, changed, publishes=not stored.sinks or stored.sinks == wanted.sinks)
        return stored if stored == self._identities()[-1] else self._evolve(stored, stored)

    def _half_filled(self) -> StateError:
        origin = (self._records.read(ORIGIN, "the record of its origin") or {}).get(
            "savepoint", "a savepoint"
        )
        return StateError(
            f"The checkpoint directory '{self.root.full_path('')}' was being filled from '{origin}' when its "
            "job was killed",
            hint=f"Start it with 'execution.state-recovery.path' = '{origin}' again, or in a new directory.",
        )

    def _commit(self, epoch: int) -> EpochCommit:
        record = self._record(EpochCommit, _name(epoch, _COMMIT), "the commit record", epoch)
        if record is None:
            raise StateError(
                f"Commit record {epoch} vanished from '{self.root.full_path(_EPOCHS)}'", hint=START_AGAIN
            )
        return record

    def _is_whole(self, epoch: int) -> bool:
        with contextlib.suppress(StateError):
            return self._commit(epoch) is not None
        return False

    def _put(self, name: str, fields: dict[str, Any]) -> None:
        if self._ownership is not None:
            self._ownership.check()
        self._records.put(name, fields)

    def _record(self, kind: type[T], name: str, what: str, epoch: int | None = None) -> T | None:
        fields = self._records.read(name, what)
        if fields is None:
            return None
        path = f"{what} '{self.root.full_path(name)}'"
        if epoch is not None and fields.get("epoch") != epoch:
            raise damaged(path, f"it is that of epoch {fields.get('epoch')}")
        try:
            return kind(**fields)
        except TypeError as e:
            raise damaged(path, str(e)) from e


def _recorded(record: EpochPlan | EpochCommit) -> dict[str, Any]:
    """Not ``asdict``, which copies all that is in it, at every epoch."""
    return {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}


def identity_records(storage: Storage) -> list[str]:
    """The names of the job records that there are."""
    names = itertools.takewhile(
        lambda name: storage.stat(name) is not None, map(_identity, itertools.count())
    )
    return list(names)


def _identity(number: int) -> str:
    return f"job.{number}.json" if number else _IDENTITY


def _name(epoch: int, suffix: str) -> str:
    return f"{_EPOCHS}/{epoch}{suffix}"
