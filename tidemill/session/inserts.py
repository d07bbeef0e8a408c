"""Starts jobs of INSERTs, and changes the query of a job.

With ``tidemill.evolution`` = ``backfill`` a changed query gets the state and the output of a run from the
beginning (``runtime.replay.backfill``). This works for a running job (ALTER JOB), for a job that starts again
in its checkpoint directory, and for a job that starts from a savepoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

from tidemill.catalog.table import CatalogTable
from tidemill.config import execution_options, table_options
from tidemill.errors import StateError, TidemillError
from tidemill.files.file_snapshot import file_snapshot
from tidemill.files.storage import Storage
from tidemill.physical.batch import nodes as b
from tidemill.plan import nodes as n
from tidemill.plan.optimizer import optimize
from tidemill.runtime.batch import insert
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.runtime.checkpoint.evolution import Evolution, backfilled, evolution
from tidemill.runtime.checkpoint.identity import JobIdentity, changed_functions
from tidemill.runtime.checkpoint.savepoint import Savepoint
from tidemill.runtime.events import StateTakenOver
from tidemill.runtime.job.graphs import state_names, unread_job
from tidemill.runtime.job.identity import job_identity
from tidemill.runtime.job.start import InsertsStart
from tidemill.runtime.replay.backfill import Backfill, has_same_results
from tidemill.runtime.restarts.job import RestartingJob
from tidemill.runtime.restarts.strategy import NoRestart, strategy_of
from tidemill.session import binding, planning
from tidemill.session.background import accompany
from tidemill.session.context import SessionContext
from tidemill.session.execution import (
    job_request,
    optimized_insert,
    own_directory,
    starter,
    table_now,
)
from tidemill.session.jobs.job import JobHandle
from tidemill.session.jobs.kept_query import former_session
from tidemill.session.mode import is_batch
from tidemill.session.planning import bundled
from tidemill.session.result import StatementKind, TableResult
from tidemill.sql import statements as s
from tidemill.types.logical import BIGINT, Field

READS_AHEAD = 2
"""How often a backfill reads the available history while the old job runs; the second read is short."""


def run_inserts(
    context: SessionContext, sinks: Sequence[n.Sink], written: Sequence[s.Insert] = (), *, waits: bool = True
) -> TableResult:
    """Runs INSERTs as one job. ``written``: the statements. In batch mode they have ended on return. In
    streaming mode the job has started; with ``waits`` and ``table.dml-sync`` it has ended."""
    names = [str(sink.table.path) for sink in sinks]
    name = "insert-into_" + ",".join(names)
    fields = tuple(Field(name, BIGINT) for name in dict.fromkeys(names))
    if is_batch(context):
        for sink in sinks:
            with file_snapshot():
                insert.run_insert(_batch_insert(context, sink), job_request(context, name))
        return _inserted(context, fields, None)
    given = context.place_job
    with own_directory(context) if given is None else nullcontext(given()) as place:
        start = starter(context, sinks, name, place, written)
        if place and is_backfilled(context):
            _backfill_at_start(context, start, sinks)
        strategy = strategy_of(start.request.config) if place else NoRestart()
        job = RestartingJob.follow(start(), start, strategy, start.request.on_event)
    context.jobs.add(job)
    context.on_job(job)
    accompany(job, context, start.request.config)
    result = _inserted(context, fields, job)
    if waits and context.configuration.read(table_options.DML_SYNC):
        job.wait()
    return result


def inserted_nothing(context: SessionContext, table: CatalogTable) -> TableResult:
    """The result of a statement that has written no row."""
    return _inserted(context, (Field(str(table.path), BIGINT),), None)


def alter_job(
    context: SessionContext, job: RestartingJob, sinks: Sequence[n.Sink], written: Sequence[s.Insert]
) -> None:
    """Replaces the query of the running ``job`` by the INSERTs ``sinks`` after its epoch, with its state;
    with a backfill, as if they had run from the beginning. If the state does not fit, it raises StateError
    and the job continues unchanged."""
    found = state_under(context, sinks, job.directory)
    start = starter(context, sinks, job.name, job.directory, written)
    former = job.restart
    assert isinstance(former, InsertsStart)
    if is_backfilled(context) and not (found.is_same and has_same_results(former, start)):
        _backfill(job, Backfill.of(former, start))
        _tell(start, found, job.job_id)
    else:
        drops = context.configuration.read(execution_options.IGNORE_UNCLAIMED)
        found.check(f"the state of job {job.job_id}", drops=drops)
        job.alter(start)
    accompany(job, context, start.request.config)
    context.on_altered(job)


def _backfill(job: RestartingJob, made: Backfill) -> None:
    """Reads most of the job's history while the job runs, then switches it to the new query."""
    try:
        for _ in range(READS_AHEAD):
            held = job.rest()
            held.rested.set()
            held.release()
            made.ahead(held.commit)
        job.alter(made.wanted, made.switch)
    except BaseException:
        made.drop()
        raise


def _backfill_at_start(context: SessionContext, start: InsertsStart, sinks: Sequence[n.Sink]) -> None:
    """Prepares the directory of ``start`` as if its INSERTs had run from the beginning. If that is not
    possible, it raises StateError or NotSupportedError and changes nothing."""
    config = start.request.config
    own = Storage.configured(start.request.checkpoint_directory, config)
    is_new = CheckpointDirectory(own).stored_identity() is None
    place = config.read(execution_options.RECOVERY_PATH) if is_new else start.request.checkpoint_directory
    if not place:
        return
    left = Savepoint.open(Storage.configured(place, config))
    wanted = replace(_identity(context, sinks, left), query=dict(start.request.query))
    found = evolution(left.identity, wanted)
    if found.is_same and left.identity.has_same_results(wanted):
        return
    made = Backfill.of(_former(context, left, start), start)
    if is_new:
        claims = config.read(execution_options.CLAIM_MODE).upper() == "CLAIM"
        job_id = made.begin(left, claims=claims, has=partial(table_now, context))
    else:
        job_id = made.switch()
    _tell(start, found, job_id)


def _former(context: SessionContext, left: Savepoint, start: InsertsStart) -> InsertsStart:
    """The INSERTs of the job that made the savepoint ``left``. StateError if they are not known, or if their
    meaning has changed since."""
    session, written = former_session(left.identity.query, context, left.what)
    try:
        sinks = [binding.bind_insert(session, insert) for insert in written]
        made = starter(session, sinks, start.request.name, start.request.checkpoint_directory)
        again = replace(_identity(session, sinks, left), query=left.identity.query)
    except TidemillError as e:
        raise StateError(f"The query of {left.what} cannot be planned any more: {e.message}") from e
    functions = changed_functions(left.identity, again)
    if functions:
        raise StateError(
            f"The query of {left.what} would not give the same rows again: the code of {functions[0]} has "
            "changed"
        )
    if not (evolution(left.identity, again).is_same and left.identity.has_same_results(again)):
        raise StateError(
            f"The query of {left.what} has another meaning now: a table, view or option of it has changed"
        )
    return made


def _tell(start: InsertsStart, found: Evolution, job_id: str) -> None:
    changes = tuple(map(str, backfilled(found).changes))
    start.request.on_event(StateTakenOver(job_id=job_id, changes=changes))


def is_backfilled(context: SessionContext) -> bool:
    return context.configuration.read(execution_options.EVOLUTION) == "backfill"


def state_under(context: SessionContext, plans: Sequence[n.LogicalNode], place: str) -> Evolution:
    """How the state in the directory ``place``, a savepoint or a job's checkpoint, changes if a job of these
    plans resumes from it. StateError if there is no state."""
    config = bundled(context.configuration, plans)
    savepoint = Savepoint.open(Storage.configured(place, config))
    return evolution(savepoint.identity, _identity(context, plans, savepoint))


def _identity(context: SessionContext, plans: Sequence[n.LogicalNode], left: Savepoint) -> JobIdentity:
    """The identity of a job of these plans that resumes from the savepoint ``left``."""
    config = bundled(context.configuration, plans)
    roots = planning.physical_job(config, [optimize(plan) for plan in plans])
    names = state_names(left.identity, left.commit)
    zone = context.time_zone
    _, compiled = unread_job(roots, config, frames=context.frames, zone=zone, names=names)
    return job_identity(roots, compiled, "", left.identity.rules)


def _batch_insert(context: SessionContext, sink: n.Sink) -> b.Sink:
    planned = planning.batch(context, optimized_insert(sink))
    assert isinstance(planned, b.Sink)
    return planned


def _inserted(context: SessionContext, fields: tuple[Field, ...], job: JobHandle | None) -> TableResult:
    return TableResult(kind=StatementKind.INSERT, fields=fields, rows=(), zone=context.zone, job=job)
