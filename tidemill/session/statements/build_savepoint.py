"""CREATE SAVEPOINT 'path' FOR INSERT ... WITH STATE (table AS query, ...).

The INSERT is planned as a streaming job, the queries as batch ones, whatever mode the session is in. A job
that starts from the savepoint goes on as if it had read what the queries have read.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tidemill.catalog.table import CatalogTable, Column, ObjectPath
from tidemill.changelog.watermarks import NONE
from tidemill.config.execution_options import BUILD_SOURCES, BUILD_WATERMARK
from tidemill.deep_calls import with_room
from tidemill.errors import ValidationError
from tidemill.files.file_snapshot import file_snapshot
from tidemill.files.storage import Storage
from tidemill.plan import nodes as n
from tidemill.plan.optimizer import optimize
from tidemill.runtime.batch.query import run_tasks
from tidemill.runtime.event_time.beginning import watermarks_at
from tidemill.runtime.job.graphs import compiled_inserts
from tidemill.runtime.job.identity import job_identity
from tidemill.runtime.job.start import InsertsStart
from tidemill.runtime.state_tables.building import NewState
from tidemill.runtime.state_tables.connector import CONNECTOR, PATH, TABLE
from tidemill.runtime.state_tables.new_tables import NewTable, new_tables
from tidemill.session import binding, execution, planning
from tidemill.session.context import SessionContext
from tidemill.session.mode import in_mode
from tidemill.session.result import TableResult, listing
from tidemill.sql import statements as s
from tidemill.types.logical import STRING, Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Tasks = Callable[["DataFrame"], "DataFrame"]
_NAME = "create-savepoint"
_1970 = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def build_savepoint(statement: s.BuildSavepoint, context: SessionContext) -> TableResult:
    """Returns when the savepoint is whole."""
    context.permissions.check_place(statement.path, "CREATE SAVEPOINT", statement.position)
    target = Storage.configured(statement.path, context.configuration)
    # The queries and the sources look at files once: what counts as read is what was read.
    with file_snapshot():
        state = _filled(statement, context, target)
    return listing((Field("savepoint path", STRING),), [(state.target.full_path(""),)])


def _filled(statement: s.BuildSavepoint, context: SessionContext, target: Storage) -> NewState:
    start = _job(statement, context)
    outputs, compiled = compiled_inserts(start.sinks, start.request)
    identity = job_identity(start.sinks, compiled, start.request.name)
    nodes = with_room(lambda: [node for output in outputs.values() for node in output.walk()])
    marks = watermarks_at(_watermark(context), nodes)
    state = NewState(
        target=target,
        identity=identity,
        tables=new_tables(target, identity, nodes, marks),
        parallelism=compiled.parallelism,
        now=int(context.clock() * 1000),
        watermarks=marks,
    )
    given = _given(statement, state)
    with in_mode(context, "batch"):
        sinks = {name: _sink(asked, state.tables[name], context) for name, asked in given.items()}
        state.begin()
        try:
            if context.configuration.read(BUILD_SOURCES).upper() == "READ":
                state.read_to_the_end(compiled.sources, start.request.application)
            for name in state.tables:
                sink = sinks[name]
                state.put(name, sink.target_columns, partial(_run, context, sink))
            state.publish()
        except BaseException:
            state.discard()
            raise
    return state


def _job(statement: s.BuildSavepoint, context: SessionContext) -> InsertsStart:
    target = statement.target
    inserts = target.inserts if isinstance(target, s.StatementSet) else (target,)
    with in_mode(context, "streaming"):
        return execution.starter(context, [binding.bind_insert(context, i) for i in inserts], _NAME)


def _watermark(context: SessionContext) -> int:
    """The event time that the history has reached, in ms; NONE if the session does not say."""
    text = context.configuration.read(BUILD_WATERMARK)
    if not text:
        return NONE
    try:
        time = dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
    except ValueError as e:
        raise ValidationError(
            f"'{BUILD_WATERMARK.key}' is '{text}', and must be a time such as '2024-01-01 10:30:00'."
        ) from e
    return (time - _1970) // dt.timedelta(milliseconds=1)


def _given(statement: s.BuildSavepoint, state: NewState) -> dict[str, s.StateQuery]:
    """By table. ValidationError if it is not each table of the job once."""
    found: dict[str, s.StateQuery] = {}
    for asked in statement.tables:
        if asked.table not in state.tables:
            raise ValidationError(
                f"The job has no table of state '{asked.table}'.",
                position=asked.position,
                expected=tuple(state.tables),
            )
        if asked.table in found:
            raise ValidationError(f"State '{asked.table}' is given twice.", position=asked.position)
        found[asked.table] = asked
    missing = [name for name in state.tables if name not in found]
    if missing:
        needed = ", ".join(f"`{c}`" for c in state.tables[missing[0]].needed)
        raise ValidationError(
            f"WITH STATE lacks the table '{missing[0]}' with the columns {needed}.",
            position=statement.position,
        )
    return found


def _sink(asked: s.StateQuery, new: NewTable, context: SessionContext) -> n.Sink:
    """The rows as the table has them: the columns that the query names, cast as an INSERT does."""
    query = s.Query(tree=asked.query, text="", position=asked.position)
    columns = asked.columns or binding.column_names(context, query)
    missing = [name for name in new.needed if name not in columns]
    if missing:
        raise ValidationError(
            f"The query for '{asked.table}' lacks the column '{missing[0]}'.",
            position=asked.position,
            hint=f"It needs {', '.join(f'`{c}`' for c in new.needed)}: name them by AS, or behind the table.",
        )
    path = ObjectPath("state", "new", asked.table)
    taken = {c.name: c for c in new.columns}
    table = CatalogTable(
        path=path,
        columns=tuple(
            Column(name=name, type=taken[name].type) if name in taken else _unknown(name, asked, new)
            for name in columns
        ),
        options={"connector": CONNECTOR.identifier, PATH: "", TABLE: asked.table},
    )
    insert = s.Insert(
        target=(asked.table,),
        target_position=asked.position,
        query=asked.query,
        columns=columns,
        text="",
        position=asked.position,
    )
    return binding.bind_insert(context, insert, table)


def _unknown(name: str, asked: s.StateQuery, new: NewTable) -> Column:
    raise ValidationError(
        f"State '{asked.table}' has no column '{name}'.", position=asked.position, expected=new.needed
    )


def _run(context: SessionContext, sink: n.Sink, tasks: Tasks) -> list[str]:
    root = planning.batch(context, optimize(sink.input))
    return run_tasks(root, execution.job_request(context, _NAME), tasks)
