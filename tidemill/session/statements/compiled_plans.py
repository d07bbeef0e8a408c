"""COMPILE PLAN and EXECUTE PLAN: INSERTs with all that they name, in a file.

The file has the statement and the tables, views and functions in it as they are when it is written; whoever
executes it gets the same rows, whatever has become of these since, and in a session that has none of them.
Options are those of the session that executes it, and so is the way in which Spark does it: what is kept is
the statement, which is planned anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tidemill.config.table_options import FORCE_RECOMPILE
from tidemill.errors import TidemillError, ValidationError
from tidemill.files.storage import Storage
from tidemill.files.systems import SETTINGS
from tidemill.plan.nodes import Sink
from tidemill.session import binding, inserts, snapshot
from tidemill.session.context import SessionContext
from tidemill.session.jobs.kept_query import RecordingSession
from tidemill.session.result import TableResult, ok
from tidemill.session.statements import plan_files
from tidemill.sql import statements as s

Json = dict[str, Any]


def compile_plan(statement: s.CompilePlan, context: SessionContext) -> TableResult:
    """A file that is there stays as it is: COMPILE AND EXECUTE runs what is in it."""
    context.permissions.check_place(statement.file, "COMPILE PLAN", statement.position)
    kept = _kept(statement, context)
    there = _exists(statement.file, context)
    forced = context.configuration.read(FORCE_RECOMPILE)
    if there and not (statement.execute or statement.if_not_exists or forced):
        raise ValidationError(
            f"Cannot overwrite the plan file '{statement.file}'. Either manually remove the file or, if "
            f"you're debugging your job, set the option '{FORCE_RECOMPILE.key}' to true.",
            position=statement.position,
        )
    if not there or (forced and not statement.if_not_exists):
        plan_files.write(*_storage(statement.file, context), statement.file, kept)
    return _executed(statement.file, context) if statement.execute else ok()


def execute_plan(statement: s.ExecutePlan, context: SessionContext) -> TableResult:
    context.permissions.check_place(statement.file, "EXECUTE PLAN", statement.position)
    if not _exists(statement.file, context):
        raise ValidationError(f"file resource [{statement.file}] not found.", position=statement.position)
    return _executed(statement.file, context)


def _executed(file: str, context: SessionContext) -> TableResult:
    plan = plan_files.read(*_storage(file, context), file)
    with _as_compiled(plan, context):
        return inserts.run_inserts(context, *_bound(plan, file, context))


def _bound(
    plan: plan_files.Plan, file: str, context: SessionContext
) -> tuple[list[Sink], Sequence[s.Insert]]:
    """What runs, and the statements that it was bound from."""
    written = _inserts(plan.statement)
    try:
        return [binding.bind_insert(context, insert) for insert in written], written
    except TidemillError as e:
        e.message = f"In the statement of the plan file '{file}': {e.message}"
        raise


@contextmanager
def _as_compiled(plan: plan_files.Plan, context: SessionContext) -> Iterator[None]:
    """The session has the plan's catalogs, which reach what it may reach; what it has itself comes back."""
    own = context.catalogs, context.module_folders, context.compiled
    made = plan.session
    made.permissions = context.permissions
    made.catalogs_url, made.catalogs_seal = context.catalogs_url, context.catalogs_seal
    context.catalogs, context.module_folders = made.catalogs, made.module_folders
    context.compiled = plan.text
    try:
        yield
    finally:
        context.catalogs, context.module_folders, context.compiled = own


def _inserts(statement: s.Insert | s.StatementSet) -> Sequence[s.Insert]:
    return statement.inserts if isinstance(statement, s.StatementSet) else (statement,)


def _kept(statement: s.CompilePlan, context: SessionContext) -> Json:
    """What goes into the file. Raises what is wrong with the statement."""
    recording = RecordingSession(context)
    for insert in _inserts(statement.target):
        binding.bind_insert(recording, insert)
    text = statement.target.text
    if isinstance(statement.target, s.StatementSet):
        text = f"EXECUTE {text}"
    paths = {(p.catalog, p.database, p.name) for p in recording.objects}
    functions = {("", "", f.name.rpartition(".")[2]) for f in recording.functions.values()}
    named = _Named(paths | functions)
    return plan_files.document(text, named.of(snapshot.taken(context, whole=True)))


@dataclass(frozen=True, slots=True)
class _Named:
    """What of a session's snapshot a plan needs: the objects of these names, no options."""

    names: set[tuple[str, str, str]]

    def of(self, taken: Json) -> Json:
        return {
            **taken,
            "defaults": {},
            "options": {},
            "models": [],
            "catalogs": [self._catalog(c) for c in taken["catalogs"]],
            "temporary": self._named(taken["temporary"]),
            "functions": self._functions(taken["functions"]),
        }

    def _catalog(self, catalog: Json) -> Json:
        databases = catalog["databases"]
        if databases is None:
            return catalog
        return {**catalog, "databases": [self._database(d) for d in databases]}

    def _database(self, database: Json) -> Json:
        return {
            **database,
            "objects": self._named(database["objects"]),
            "functions": self._functions(database["functions"]),
            "models": [],
        }

    def _named(self, objects: list[Json]) -> list[Json]:
        return [x for x in objects if tuple(x["path"].values()) in self.names]

    def _functions(self, functions: list[Json]) -> list[Json]:
        """Names of functions do not tell capitals from small letters."""
        called = {name.lower() for _, _, name in self.names}
        return [x for x in functions if x["name"].rpartition(".")[2].lower() in called]


def _storage(file: str, context: SessionContext) -> tuple[Storage, str]:
    """Where the file lies, and its name there."""
    config = context.configuration
    folder, slash, name = file.rpartition("/")
    settings = tuple((key, config[key]) for key in SETTINGS if key in config)
    return Storage(folder + slash if slash else ".", settings), name


def _exists(file: str, context: SessionContext) -> bool:
    storage, name = _storage(file, context)
    return storage.stat(name) is not None
