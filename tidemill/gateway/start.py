"""``tidemill gateway``: the service, its endpoints, its store, and the one Spark that all sessions share.

Start: 1. the gateway opens the store; 2. the endpoints check that they can listen, so that such errors need
not wait for Spark; 3. Spark starts; 4. the gateway restores the sessions and finished results of the previous
process, and resumes its jobs after their last epochs; 5. the endpoints listen. Stop: the endpoints stop, and
each job ends with its current epoch, to resume at the next start.
"""

from __future__ import annotations

import argparse
import fcntl
import logging
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TextIO
from urllib.parse import quote

from tidemill.config import gateway_options as g
from tidemill.config.execution_options import CHECKPOINT_DIRECTORY
from tidemill.config.option import Configuration
from tidemill.config.registry import check_all, check_at_set
from tidemill.config.seal import Seal
from tidemill.config.unknown_options import unknown_option
from tidemill.errors import SetupError, StateError
from tidemill.files.private import make_private
from tidemill.gateway.endpoints.api import Endpoint, configured
from tidemill.gateway.log import escape_controls, log_to_standard_error
from tidemill.gateway.proposed import renamed
from tidemill.gateway.security.keys import seal_by
from tidemill.gateway.security.reach import check_reach, reach_of
from tidemill.gateway.service.persistence import StoredMemory
from tidemill.gateway.service.results import Results
from tidemill.gateway.service.service import Gateway
from tidemill.gateway.service.sessions import Session
from tidemill.gateway.service.statements import Json, SqlStatements, new_environment, restored_environment
from tidemill.gateway.service.telemetry import Silent, Telemetry
from tidemill.gateway.service.workers import POOL_THREAD
from tidemill.gateway.store.store import KeptJob, KeptSession, Store
from tidemill.runtime.restarts.job import RestartingJob
from tidemill.runtime.spark.session import spark_application
from tidemill.runtime.spark.settings import MASTER, is_within_machine, spark_settings
from tidemill.session import dispatch
from tidemill.session.catalogs.locations import sqlite_url, state_directory
from tidemill.session.context import SessionContext
from tidemill.session.history.keeper import Keeper, own_records
from tidemill.session.history.records import Records
from tidemill.session.jobs.job import EndedJob, JobHandle
from tidemill.session.jobs.started import Jobs
from tidemill.session.permissions import Permissions
from tidemill.sql.parser import parse_statement

_LOGGER = logging.getLogger("tidemill.gateway")
_RESULTS, _JOBS, _STORE, _HISTORY = "results", "jobs", "store", "history"
_FILE, _LOCK, _KEY = "gateway.db", "lock", "key"
_LAST_EPOCH_SECONDS = 10.0
_LAST_STATEMENT_SECONDS = 3.0
_SEEN_SECONDS = 5.0
_TURN_SECONDS = 0.001
"""Interpreter switch interval: the longest time that a planning thread delays threads that only pass on
data."""


def command(parsed: argparse.Namespace) -> int:
    """Runs until SIGINT or SIGTERM."""
    sys.setswitchinterval(_TURN_SECONDS)
    config = Configuration(renamed(parsed.options))
    _check(config)
    with log_to_standard_error():
        _serve(config)
        end_threads(_LAST_STATEMENT_SECONDS)
    return 0


def _serve(config: Configuration) -> None:
    process = GatewayProcess(config)
    endpoints: list[Endpoint] = []
    try:
        endpoints += configured(process.gateway, config)
        # A session's first statement must not wait for modules and Spark, nor choose its master.
        dispatch.load()
        spark_application(config)
        process.start()
        for endpoint in endpoints:
            endpoint.start()
            sys.stdout.write(f"Listening on {endpoint.address}\n")
        sys.stdout.flush()
        _until_told()
    finally:
        for endpoint in endpoints:
            endpoint.stop()
        process.close()


def end_threads(seconds: float) -> None:
    """Waits for the threads of statements and requests. If one does not end within ``seconds``, ends the
    process: the interpreter would wait for this thread forever."""
    end = time.monotonic() + seconds
    for thread in threading.enumerate():
        if thread.name.startswith(POOL_THREAD):
            thread.join(max(end - time.monotonic(), 0))
            if thread.is_alive():
                _LOGGER.warning("a statement did not stop: the gateway ends without it")
                logging.shutdown()
                os._exit(0)


def _check(config: Configuration) -> None:
    """ValidationError for options with which no session can be opened. Warns of unknown options."""
    for key in config:
        check_at_set(key, config.get(key, ""))
        warning = unknown_option(key)
        if warning:
            sys.stderr.write(f"Warning: {escape_controls(warning)}\n")
    check_all(config)


@dataclass(slots=True)
class GatewayProcess:
    """A gateway with its directory, store, sessions and jobs. StateError if the store is unusable, SetupError
    if another gateway uses the directory."""

    config: Configuration
    _jobs: dict[str, Jobs] = field(default_factory=dict)
    gateway: Gateway = field(init=False)
    _lock: TextIO = field(init=False)
    _memory: StoredMemory = field(init=False)
    _results: Results = field(init=False)
    _url: str = field(init=False)
    _seal: Seal = field(init=False)

    def __post_init__(self) -> None:
        check_reach(self.config)
        root = directory(self.config)
        try:
            os.makedirs(root, mode=0o700, exist_ok=True)
            for folder in (_RESULTS, _JOBS, _STORE):
                make_private(os.path.join(root, folder))
            self._lock = _locked(root)
        except OSError as e:
            raise SetupError(
                f"The gateway's directory '{root}' cannot be used: {e.strerror}: '{e.filename}'.",
                hint=f"'{g.DIRECTORY.key}' is a directory that the gateway can write in.",
            ) from e
        self._url = self.config.read(g.STORE) or sqlite_url(os.path.join(root, _STORE, _FILE))
        self._seal = seal_by(self.config.read(g.KEY_FILE) or os.path.join(root, _KEY))
        self._results = Results(self.config, os.path.join(root, _RESULTS))
        self._memory = StoredMemory(
            store=Store.open(self._url, self._seal),
            results=self._results,
            jobs_folder=os.path.join(root, _JOBS),
        )
        self.gateway = Gateway(
            config=self.config,
            new_session=self._new_session,
            memory=self._memory,
            jobs=self.jobs,
            records=self._records,
            permissions=self._reach,
        )
        self.gateway.telemetry = _telemetry(self.gateway, self.config.read(g.OTLP_ENDPOINT))

    def start(self) -> None:
        """Restores the sessions and jobs of the previous process. Spark must run."""
        self._bring_back_sessions()
        for kept in self._memory.kept_jobs():
            self._bring_back_job(kept)
        self.gateway.start()

    def jobs(self, user: str) -> Jobs:
        """The jobs of a user. No user sees another's jobs."""
        return self._jobs.setdefault(user, Jobs(followed=True))

    def close(self) -> None:
        self._memory.end()
        self.gateway.close()
        for jobs in self._jobs.values():
            jobs.stop(_LAST_EPOCH_SECONDS)
        self._end()

    def vanish(self) -> None:
        """Ends like a killed process: nothing more is stored."""
        self._memory.end()
        self.gateway.close()
        for jobs in self._jobs.values():
            for started in jobs.all():
                started.job.abort()
            jobs.stop(_LAST_EPOCH_SECONDS)
        self._end()

    def _end(self) -> None:
        self._memory.store.close()
        self._lock.close()

    def _new_session(self, properties: Mapping[str, str], user: str) -> SqlStatements:
        session_options = {key: value for key, value in self.config.items() if not key.startswith(g.PREFIX)}
        environment = new_environment(session_options, properties)
        return self._at_home(SqlStatements(environment=environment, results=self._results), user)

    def _at_home(self, statements: SqlStatements, user: str) -> SqlStatements:
        """Connects a session to the gateway's jobs, history and checkpoint directories."""
        context = statements.environment.context
        job_directory: list[str] = [""]

        def place_job() -> str:
            job_directory[0] = self._place(context.configuration)
            return job_directory[0]

        def job_started(job: JobHandle, statement: str, snapshot: Json) -> None:
            if job_directory[0]:
                self._memory.job_started(job, job_directory[0], user, statement, snapshot)
            self._follow(job, job_directory[0], user)

        def job_altered(job: JobHandle, statement: str, snapshot: Json) -> None:
            assert isinstance(job, RestartingJob)
            self._memory.job_started(job, job.directory, user, statement, snapshot)

        def job_set(job: JobHandle, options: Mapping[str, str]) -> None:
            assert isinstance(job, RestartingJob)
            self._memory.job_set(job.directory, options)

        context.catalogs_url, context.catalogs_seal = lambda: self._url, self._seal
        context.permissions = self._reach(user)
        options = context.configuration.items()
        context.permissions.check_options({k: v for k, v in options if self.config.get(k) != v})
        self._watch(context, user)
        context.jobs, context.place_job = self.jobs(user), place_job
        statements.job_started, statements.job_altered = job_started, job_altered
        statements.job_set = job_set
        return statements

    def _reach(self, user: str) -> Permissions:
        return reach_of(self.config, user, directory(self.config))

    def _watch(self, context: SessionContext, user: str) -> None:
        """Connects the session's jobs to the metrics, and to the live view and history of their user."""
        context.on_progress = partial(self.gateway.epoch, user=user)
        context.on_event = partial(self.gateway.job_event, user=user)
        context.history = Keeper(records=self._records(user), watch=self.gateway.watch(user))

    def _records(self, user: str) -> Records:
        """The records of a user, in a folder of his own."""
        kept = own_records(self.config, os.path.join(directory(self.config), _HISTORY))
        return Records(os.path.join(kept.folder, f"user-{quote(user, safe='')}"), kept.most)

    def _follow(self, job: JobHandle, place: str, user: str) -> None:
        """Stores the job's end, in a thread. ``place``: its checkpoint directory; '' if the job is not
        stored."""
        threading.Thread(
            target=self._take_down, args=(job, place, user), name="tidemill-gateway-job", daemon=True
        ).start()

    def _take_down(self, job: JobHandle, place: str, user: str) -> None:
        """Stores the job's metrics now and then, and at its end."""
        error, seen = "", 0
        while place and job.is_running():
            with suppress(Exception):
                job.wait(_SEEN_SECONDS)
            seen = self._keep_seen(job, place, user, seen)
        try:
            job.wait()
        except Exception as e:
            error = str(e)
        if place:
            self._memory.job_ended(place, job.status, error or None)
        self.jobs(user).retire(job, error)

    def _keep_seen(self, job: JobHandle, place: str, user: str, seen: int) -> int:
        """Stores the job's metrics if they have changed; returns the number of changes so far."""
        watch = self.gateway.watch(user)
        changes, look = watch.changes(job.job_id), watch.look(job.job_id)
        if changes > seen and look is not None:
            self._memory.job_seen(place, look)
        return changes

    def _place(self, config: Configuration) -> str:
        """A checkpoint directory for a new job; '' if no directory is shared by all machines."""
        parent = config.read(CHECKPOINT_DIRECTORY)
        if not parent and not is_within_machine(spark_settings(self.config)[MASTER]):
            return ""
        return f"{(parent or self._memory.jobs_folder).rstrip('/')}/{uuid.uuid4().hex}"

    def _bring_back_sessions(self) -> None:
        operations = self._memory.kept_operations()
        for kept in self._memory.store.sessions():
            try:
                session = self._bring_back(kept)
            except Exception:  # one broken session must not prevent the others
                _LOGGER.exception("session %s cannot be brought back", kept.handle)
            else:
                session.operations.update((o.handle, o) for o in operations.get(kept.handle, ()))
        self._memory.forget_results(o.handle for held in operations.values() for o in held)

    def _bring_back(self, kept: KeptSession) -> Session:
        statements = SqlStatements.restored(kept.snapshot, self._results, lambda *_: None)
        session = Session(
            handle=kept.handle,
            name=kept.name,
            user=kept.owner,
            statements=self._at_home(statements, kept.owner),
            workers=self.gateway.workers,
            clock=self.gateway.sessions.clock,
            opened=kept.opened,
        )
        self.gateway.sessions.put_back(session)
        return session

    def _bring_back_job(self, kept: KeptJob) -> None:
        """Resumes a job that ran; an ended job only appears in lists."""
        jobs = self.jobs(kept.owner)
        seen = self._memory.job_history(kept.place)
        if seen is not None:
            self.gateway.watch(kept.owner).put_back(kept.job_id, seen)
        if kept.status != "RUNNING":
            jobs.put_back(EndedJob(kept.job_id, kept.name, kept.status, kept.error or ""), kept.started)
            return
        try:
            job = self._resumed(kept)
        except Exception as e:
            _LOGGER.exception("job %s cannot go on", kept.job_id)
            self._memory.job_ended(kept.place, "FAILED", str(e))
            jobs.put_back(EndedJob(kept.job_id, kept.name, "FAILED", str(e)), kept.started)
        else:
            jobs.put_back(job, kept.started)
            self._follow(job, kept.place, kept.owner)

    def _resumed(self, kept: KeptJob) -> JobHandle:
        environment = restored_environment(kept.snapshot)
        context = environment.context
        context.place_job = lambda: kept.place
        context.catalogs_url, context.catalogs_seal = lambda: self._url, self._seal
        context.permissions = self._reach(kept.owner)
        self._watch(context, kept.owner)
        started: list[JobHandle] = []
        context.on_job = started.append
        context.configuration = context.configuration.with_value("table.dml-sync", "false")
        for statement in kept.statements:
            environment.execute(parse_statement(statement))
        if not started:
            raise StateError(f"The statement of job {kept.job_id} no longer starts a job")
        return started[0]


def directory(config: Configuration) -> str:
    """The gateway's own directory."""
    return config.read(g.DIRECTORY) or os.path.join(state_directory(), "gateway")


def _locked(root: str) -> TextIO:
    """Locks the directory for the gateway's life: two gateways would end each other's statements as
    interrupted."""
    lock = open(os.path.join(root, _LOCK), "a", encoding="utf-8")  # noqa: SIM115 - held as long as the gateway
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        lock.close()
        raise SetupError(
            f"Another gateway uses the directory '{root}'.",
            hint=f"Give this one another '{g.DIRECTORY.key}'.",
        ) from e
    return lock


def _telemetry(gateway: Gateway, endpoint: str) -> Telemetry:
    """The telemetry of ``endpoint``. SetupError if its packages are not installed."""
    if not endpoint:
        return Silent()
    try:
        module = import_module("tidemill.gateway.open_telemetry")
    except ImportError as e:
        raise SetupError(
            f"'{g.OTLP_ENDPOINT.key}' needs OpenTelemetry's packages: {e}",
            hint="pip install 'tidemill[otel]'",
        ) from e
    made: Telemetry = module.to_collector(gateway, endpoint)
    return made


def _until_told() -> None:
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told.set())
    told.wait()
