"""Rows of a savepoint's state are written, changed and deleted: a new savepoint has the outcome.

The old savepoint stays as it is.

Numbered, as they happen:

1. ``job.json`` claims the new place: of two edits that name it one is refused.
2. The old savepoint is compared with its checksums; its files are linked or copied to the new place.
3. Tasks, each with all rows of some partitions, write runs and a manifest a partition there, as an epoch
   does. Each checks that no key comes twice and that the rows keep what must hold (``invariants``).
4. Files that the new manifests do not name are removed.
5. ``savepoint.json`` is written: the new savepoint is there. Before that it is absent.

Cost: the links, the rows, and what an epoch with these rows merges.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.changelog.watermarks import NONE
from tidemill.connectors.api import Sink
from tidemill.connectors.arrow_maps import map_batches
from tidemill.errors import NotSupportedError, OwnershipError, StateError, ValidationError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.runtime.checkpoint.epochs import EpochCommit, recorded
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.savepoint import (
    MARK,
    STATE,
    Savepoint,
    check_empty,
    seal,
    unwritten,
    written_by_another,
)
from tidemill.runtime.state_tables.naming import OperatorState, StoredTable, state_files
from tidemill.runtime.state_tables.writable import rules_of
from tidemill.runtime.state_tables.writer import PART, Part, StateWriter
from tidemill.state.named_files import named_files
from tidemill.state.slices import KEY_GROUPS, Slice
from tidemill.state.storage import StateFiles
from tidemill.types.logical import Field
from tidemill.types.physical import quote, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def parts_of(operator: OperatorState) -> tuple[Part, ...]:
    """All key groups in order: the partitions that have state, and between them new ones."""
    held = sorted((slices[0].first, slices[-1].stop, n) for n, slices in operator.slices.items() if slices)
    found, at, free = list[Part](), 0, 1 + max((n for *_, n in held), default=-1)
    for first, stop, number in (*held, (KEY_GROUPS, KEY_GROUPS, -1)):
        if at < first:
            found.append((free, at, first, ()))
            free += 1
        if number >= 0:
            slices = tuple((s.manifest, s.first, s.stop) for s in operator.slices[number])
            found.append((number, first, stop, slices))
        at = stop
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """``fields``: the columns of the rows to come. ``deletes``: the rows are to go."""

    fields: tuple[Field, ...]
    deletes: bool = False


@dataclass(slots=True, kw_only=True)
class SavepointSink(Sink):
    """``target``: where the new savepoint is to be."""

    savepoint: Savepoint
    operator: OperatorState
    target: Storage
    writer: StateWriter
    edit: Edit
    _begun: bool = False

    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        self.begin()
        return staged(self.writer, frame, self.edit)

    def begin(self) -> None:
        """Steps 1 and 2. StateError where the old savepoint is not whole, or the place not empty."""
        check_empty(self.target)
        if not self.savepoint.is_published:
            what, epoch = self.savepoint.what, self.savepoint.epoch
            raise StateError(
                f"{what[0].upper()}{what[1:]} cannot be edited: whether its last epoch {epoch} has reached "
                "its sinks is not known",
                hint="Start its job where it was, and stop it: then it is known.",
            )
        claim(self.target, self.savepoint.identity)  # 1
        self._begun = True
        self.savepoint.check_whole()  # 2
        try:
            for path in (*self.savepoint.state_files(), *self.savepoint.source_files()):
                self.target.take_in(self.savepoint.storage, path)
        except OSError as e:
            raise unwritten(self.target, e) from e

    def publish(self, epoch: int, tokens: list[str]) -> None:
        """Steps 4 and 5; nothing is left where they fail. Not twice: a batch job publishes once."""
        try:
            commit = self._commit([json.loads(token) for token in tokens])
            finish(self.target, self.savepoint.identity, commit)
        except BaseException:
            self.discard(epoch)
            raise

    def _commit(self, tokens: list[Mapping[str, Any]]) -> EpochCommit:
        before = self.savepoint.commit
        assert before is not None
        slices = dict(self.operator.slices)
        for token in tokens:
            slices[token["part"]] = (Slice(token["manifest"], *token["groups"]),)
        manifests = {**before.manifests, **recorded({self.operator.id: slices})}
        return replace(before, manifests=manifests, tokens={})

    def discard(self, epoch: int) -> None:
        if self._begun:
            self.target.remove_directory("")

    def finish(self) -> None:
        """Nothing is left to do."""


def claim(target: Storage, identity: JobIdentity) -> None:
    """The place of a new savepoint, which is empty: of two that write there at once one is refused."""
    try:
        CheckpointDirectory(target).make(replace(identity, whole=False), None)
    except OwnershipError as e:
        raise written_by_another(target) from e
    except OSError as e:
        raise unwritten(target, e) from e


def staged(writer: StateWriter, frame: DataFrame, edit: Edit) -> DataFrame:
    """The tokens of the tasks that write the rows of ``frame``."""
    names = [f"c{place}" for place in range(len(edit.fields))]
    types = [f"{quote(n)} {spark_type(f.type)}" for n, f in zip(names, edit.fields, strict=True)]
    if edit.deletes:
        names.append(KIND_COLUMN)
        types.append(f"{quote(KIND_COLUMN)} TINYINT")
    routed = map_batches(frame.toDF(*names), writer.route, ", ".join([*types, f"{PART} INT"]))
    return map_batches(routed.repartition(len(writer.parts), PART), writer.write, "token STRING")


def finish(target: Storage, identity: JobIdentity, commit: EpochCommit) -> None:
    """What the commit does not name goes, then the savepoint is there."""
    files = StateFiles.open(target.below(STATE), f"the savepoint '{target.full_path('')}'")
    try:
        CheckpointDirectory(target).put_first(commit)
        held = [s.manifest for parts in commit.slices.values() for part in parts.values() for s in part]
        named = named_files(files, held)
        for name in sorted({*files.names()} - {*named}):  # 4
            files.remove(name)
        made = {f"{STATE}/{name}": found for name, found in named.items()}
        seal(target, MARK, identity, commit, made)  # 5
    except OSError as e:
        raise unwritten(target, e) from e


def sink_of(
    savepoint: Savepoint,
    operators: tuple[OperatorState, ...],
    operator: OperatorState,
    table: StoredTable,
    target: Storage,
    request: Edit,
) -> SavepointSink:
    """NotSupportedError where the table is not one whose rows can be written in that way."""
    commit = savepoint.commit
    if commit is None:
        raise NotSupportedError(f"{savepoint.what} cannot be edited: no epoch has been committed")
    mark = commit.watermarks.get(operator.id, NONE)
    rules = rules_of(state_files(savepoint), operators, operator, table, mark)
    if request.deletes and rules.kept:
        raise NotSupportedError(f"Rows of '{table.name}' cannot be deleted: {rules.kept}.")
    stored = {c.name: c.stored for c in table.columns}
    given = {stored[f.name] for f in request.fields}
    missing = {f.name for f in rules.layout.identity} - given
    if missing:
        raise ValidationError(
            f"A table to write rows of '{table.name}' by needs its keys: {sorted(missing)}."
        )
    writer = StateWriter(
        root=target.below(STATE),
        operator=operator.id,
        shown=table.name,
        rules=rules,
        names={c.stored: c.name for c in table.columns},
        parts=parts_of(operator),
        columns=tuple(stored[f.name] for f in request.fields),
        epoch=commit.epoch,
        now=commit.time,
    )
    return SavepointSink(savepoint=savepoint, operator=operator, target=target, writer=writer, edit=request)
