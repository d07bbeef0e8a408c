"""A job begins with what another one has left: a savepoint, or the checkpoint directory of an ended job.

The new job has an id of its own. Sinks count epochs by it: none may take what an earlier life of the job has
published for what this one must publish. Numbered steps; a crash between any two leaves a directory that the
next start fills anew, and the savepoint as it was:

1. The query is compared with the savepoint's (see ``evolution``), and every file with its checksum; nothing
   is written before.
2. With CLAIM ``claimed.json`` in the savepoint says whose it is from now on. It is put if absent: of two jobs
   one gets it.
3. ``origin.json`` in the job's directory says that it is being filled. What is there without a ``job.json``
   is of an attempt that was killed, and goes.
4. The files of the state and of the sources are linked or copied, then the commit record is put.
5. With a backfill the epoch after that one, with the state and the output of another query, too
   (``replay.backfill``); the savepoint's state is not needed then.
6. ``job.json``: the job is there (see ``CheckpointDirectory.open``).
7. With CLAIM the savepoint goes.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from tidemill.errors import OwnershipError, StateError, TidemillError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.directory import FILLED, ORIGIN, REPLAYS, SHOWN, CheckpointDirectory
from tidemill.runtime.checkpoint.epochs import EpochCommit
from tidemill.runtime.checkpoint.evolution import evolution
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.ownership import undisturbed
from tidemill.runtime.checkpoint.records import Records, said
from tidemill.runtime.checkpoint.savepoint import CLAIM, Savepoint, remove_savepoint

_ANY = (
    "With 'execution.state-recovery.claim-mode' = 'NO_CLAIM' any number of jobs can start from one savepoint."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """``claims``: the savepoint belongs to the job from now on. ``drops``: state of operators that the query
    lacks may be left out. ``backfill``: writes the first epoch of another query into the directory that is
    being filled."""

    savepoint: Savepoint
    claims: bool = False
    drops: bool = False
    backfill: Callable[[CheckpointDirectory, JobIdentity], None] | None = None

    def start(self, directory: CheckpointDirectory, wanted: JobIdentity) -> JobIdentity:
        """Fills the new ``directory`` and takes it; the job's identity. Raises StateError."""
        try:
            with self._undisturbed():
                self._check(wanted)  # 1
                former = [*self.savepoint.identity.former, self.savepoint.identity.job_id]
                begun = directory.begun_as() or wanted.job_id
                whole = self.backfill is not None
                kept = wanted.also_kept(self.savepoint.identity)
                wanted = replace(wanted, job_id=begun, former=former, kept=kept, whole=whole)
                identity = directory.open(wanted, lambda records: self._fill(directory, records, wanted))
                if self.claims:
                    remove_savepoint(self.savepoint.storage)  # 7
                return identity
        except OSError as e:
            directory.close()
            raise StateError(f"{self._what} cannot be taken up: {said(e)}") from e

    @property
    def _what(self) -> str:
        return f"{self.savepoint.what[0].upper()}{self.savepoint.what[1:]}"

    def _undisturbed(self) -> AbstractContextManager[object]:
        """No job runs in a checkpoint directory meanwhile."""
        return nullcontext() if self.savepoint.finished else undisturbed(self.savepoint.storage)

    def _check(self, wanted: JobIdentity) -> None:
        savepoint, commit = self.savepoint, self.savepoint.commit
        if self.backfill is None:
            evolution(savepoint.identity, wanted).check(savepoint.what, drops=self.drops)
        if commit is not None and not savepoint.is_published:
            raise StateError(
                f"{self._what} cannot be taken up: whether its last epoch {commit.epoch} has reached its "
                "sinks is not known",
                hint="Start its job where it was, and stop it: then it is known.",
            )
        savepoint.check_whole()

    def _fill(self, directory: CheckpointDirectory, records: Records, wanted: JobIdentity) -> None:
        self._claim(directory.root)  # 2
        for folder in FILLED if records.exists(ORIGIN) else ():  # 3
            directory.root.remove_directory(folder)
            directory.root.make_directory(folder)
        if not records.exists(ORIGIN):
            records.put(ORIGIN, {"savepoint": self.savepoint.where, "job": wanted.job_id})
        directory.fault("begun")
        operators = wanted.operators if self.backfill is None else {}
        files = [*self.savepoint.state_files(operators), *self.savepoint.source_files()]
        for path in files:  # 4
            directory.root.take_in(self.savepoint.storage, path)
        for folder in {path.rpartition("/")[0] for path in files}:
            directory.root.force_directory(folder)
        if self.savepoint.commit is not None:
            directory.put_first(_begun(self.savepoint.commit, operators))
        if self.backfill is not None:
            try:
                self.backfill(directory, wanted)  # 5
            except TidemillError:
                self._withdraw(directory.root, records)
                raise
        directory.fault("filled")

    def _withdraw(self, place: Storage, records: Records) -> None:
        """A refusal leaves the directory without a job, and the savepoint to others."""
        for folder in (*FILLED, REPLAYS):
            place.remove_directory(folder)
        records.remove(SHOWN)
        records.remove(ORIGIN)
        if self.claims:
            Records.open(self.savepoint.storage).remove(CLAIM)

    def _claim(self, place: Storage) -> None:
        records = Records.open(self.savepoint.storage)
        found = records.read(CLAIM, "the claim")
        if found is None and self.claims:
            try:
                records.put(CLAIM, {"directory": place.full_path("")})
                return
            except OwnershipError:
                found = records.read(CLAIM, "the claim")
            except StateError as e:
                if not isinstance(e.__cause__, OSError):
                    raise
                raise StateError(f"{self._what} cannot be claimed: {said(e.__cause__)}", hint=_ANY) from e
        if found is not None and found.get("directory") != place.full_path(""):
            raise StateError(
                f"{self._what} was claimed by the job in '{found.get('directory')}'",
                hint=_ANY,
            )


def _begun(commit: EpochCommit, operators: Container[str]) -> EpochCommit:
    """Its output was published by the job before; of operators there are these alone."""
    return replace(commit.of(operators), tokens={})
