"""TableEnvironment: the Python face of a session, in PyFlink's habits.

env = TableEnvironment.create(runtime_mode="streaming")
env.execute_sql("CREATE TABLE ...")
env.sql_query("SELECT ...").execute().print()
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame

from tidemill.catalog.table import CatalogFrame, CatalogView
from tidemill.config import registry as options
from tidemill.config.execution_options import RUNTIME_MODE
from tidemill.config.option import Configuration
from tidemill.config.unknown_options import unknown_option
from tidemill.errors import ValidationError
from tidemill.session import dispatch, frames_in
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult
from tidemill.session.statement_set import StatementSet
from tidemill.session.table import Table
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_script, parse_statement
from tidemill.sql.probe import check_parser


class TableConfig:
    """``env.get_config()``: options of the session; each change holds for the statements after it."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context

    def set(self, key: str, value: str) -> TableConfig:
        self._context.set_option(key, value)
        return self

    def get(self, key: str, default: str) -> str:
        return self._context.configuration.get(key, default)

    def set_local_timezone(self, name: str) -> TableConfig:
        return self.set("table.local-time-zone", name)

    def get_local_timezone(self) -> str:
        return self._context.time_zone


class TableEnvironment:
    """One session: catalogs, options, and the statements run in it. Not shared between threads."""

    def __init__(self, context: SessionContext) -> None:
        check_parser()
        self.context = context

    @classmethod
    def create(
        cls, configuration: Mapping[str, str] | None = None, *, runtime_mode: str = ""
    ) -> TableEnvironment:
        """``runtime_mode``: 'streaming' (the default) or 'batch'; ``configuration``: option texts by key."""
        given = dict(configuration or {})
        if runtime_mode:
            given[RUNTIME_MODE.key] = runtime_mode
        for key, value in given.items():
            options.check_at_set(key, value)
        context = SessionContext(Configuration(given))
        for key in given:
            context.warn(unknown_option(key))
        return cls(context)

    def execute_sql(self, statement: str) -> TableResult:
        """Runs one statement. A streaming SELECT or INSERT has been started on return, not ended."""
        return self.execute(parse_statement(statement))

    def execute(self, statement: s.Statement) -> TableResult:
        """As ``execute_sql``, of a parsed statement."""
        return dispatch.execute(statement, self.context)

    def execute_script(self, script: str) -> Iterator[TableResult]:
        """The results of a script's statements; each runs when the iteration comes to it."""
        for statement in parse_script(script):
            yield self.execute(statement)

    def sql_query(self, query: str) -> Table:
        """A query as a Table: checked now, run by ``execute``, ``to_pandas`` or ``to_spark``."""
        parsed = parse_statement(query)
        if not isinstance(parsed, s.Query):
            raise ValidationError("sql_query() takes a query: SELECT, VALUES, WITH or a set operation")
        return Table(self.context, parsed)

    def from_path(self, path: str) -> Table:
        """A registered table or view as a Table; ``path`` as in SQL, quoted where needed."""
        return self.sql_query(f"SELECT * FROM {path}")

    def create_temporary_view(self, path: str, table: Table | DataFrame) -> None:
        """Gives a Table or a Spark DataFrame a name in the current catalog and database."""
        named = self.context.catalogs.qualify(_parts(path))
        if isinstance(table, DataFrame):
            key = str(named)
            fields = frames_in.flink_fields(table)
            self.context.catalogs.create(CatalogFrame(path=named, key=key, fields=fields))
            self.context.frames[key] = frames_in.carrier_frame(table, fields)
            return
        self.context.catalogs.create(
            CatalogView(
                path=named,
                text=table.query.text,
                default_catalog=self.context.current_catalog,
                default_database=self.context.current_database,
                temporary=True,
            )
        )

    def drop_temporary_view(self, path: str) -> bool:
        """Whether there was one."""
        named = self.context.catalogs.qualify(_parts(path))
        if named not in self.context.catalogs.temporary:
            return False
        self.context.catalogs.drop(named, view=True, temporary=True, ignore_if_missing=True)
        self.context.frames.pop(str(named), None)
        return True

    def create_statement_set(self) -> StatementSet:
        return StatementSet(self.context)

    def get_config(self) -> TableConfig:
        return TableConfig(self.context)

    def explain_sql(self, statement: str, *details: str) -> str:
        """The plans of a query or INSERT as EXPLAIN prints them; ``details`` such as CHANGELOG_MODE."""
        words = ", ".join(details) or "PLAN FOR"
        result = self.execute_sql(f"EXPLAIN {words} {statement}")
        return str(next(result.collect())[0])

    def use_catalog(self, name: str) -> None:
        self.context.catalogs.use_catalog(name)

    def use_database(self, name: str) -> None:
        self.context.catalogs.use_database(*self.context.catalogs.qualify_database(_parts(name)))

    def get_current_catalog(self) -> str:
        return self.context.current_catalog

    def get_current_database(self) -> str:
        return self.context.current_database

    def list_catalogs(self) -> list[str]:
        return self._listed("SHOW CATALOGS")

    def list_databases(self) -> list[str]:
        return self._listed("SHOW DATABASES")

    def list_tables(self) -> list[str]:
        return self._listed("SHOW TABLES")

    def list_views(self) -> list[str]:
        return self._listed("SHOW VIEWS")

    def _listed(self, statement: str) -> list[str]:
        return [row[0] for row in self.execute_sql(statement).collect()]


def _parts(path: str) -> tuple[str, ...]:
    """The parts of a dotted name, backquoted where needed."""
    parsed = parse_statement(f"DESCRIBE {path}")
    assert isinstance(parsed, s.Describe)
    return parsed.path
