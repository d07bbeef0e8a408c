"""TableEnvironment: a session for Python programs, with PyFlink's names.

>>> env = TableEnvironment.create(runtime_mode="batch")
>>> env.sql_query("SELECT 1 + 1 AS two").to_pandas()
   two
0    2
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tidemill.catalog.objects import CatalogFunction
from tidemill.catalog.table import CatalogFrame, CatalogView, ObjectPath
from tidemill.config import registry as options
from tidemill.config.execution_options import RUNTIME_MODE
from tidemill.config.option import Configuration
from tidemill.errors import ValidationError
from tidemill.late import late
from tidemill.session import arguments, dispatch, user_modules
from tidemill.session.arguments import one_of, shown, text
from tidemill.session.context import UNNAMED, SessionContext
from tidemill.session.result import TableResult
from tidemill.session.settings import EnvironmentSettings
from tidemill.session.statement_set import StatementSet
from tidemill.session.table import Table
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_script, parse_statement
from tidemill.sql.probe import check_parser
from tidemill.types.logical import Field

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

    from tidemill.runtime.spark import session as spark_session
    from tidemill.session.frames import arrow_in, dataframe_types
    from tidemill.session.frames.arrow_in import ProgramRows, Schema
    from tidemill.session.schema import view_text
else:
    spark_session = late("tidemill.runtime.spark.session")
    arrow_in = late("tidemill.session.frames.arrow_in")
    dataframe_types = late("tidemill.session.frames.dataframe_types")
    view_text = late("tidemill.session.schema.view_text")


class TableConfig:
    """``env.get_config()``: the options of the session. A change applies to the statements after it."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context

    def set(self, key: str, value: str) -> TableConfig:
        self._context.set_option(
            text(key, "The key of an option"), text(value, f"The value of option '{key}'")
        )
        return self

    def get(self, key: str, default: str) -> str:
        return self._context.configuration.get(key, default)

    def set_local_timezone(self, name: str) -> TableConfig:
        return self.set("table.local-time-zone", name)

    def get_local_timezone(self) -> str:
        return self._context.time_zone


class TableEnvironment:
    """One session: its catalogs, its options, and the statements that run in it. Not thread-safe."""

    def __init__(self, context: SessionContext) -> None:
        check_parser()
        self.context = context

    @classmethod
    def create(
        cls, configuration: Mapping[str, str] | EnvironmentSettings | None = None, *, runtime_mode: str = ""
    ) -> TableEnvironment:
        """Opens a session.

        ``configuration``: option texts by key, or PyFlink's ``EnvironmentSettings``. ``runtime_mode``:
        'streaming' (the default) or 'batch'. ValidationError for a value that an option does not take.
        """
        if isinstance(configuration, EnvironmentSettings):
            configuration = configuration.options()
        given = dict(one_of(configuration or {}, Mapping, "The configuration", "a dict of option texts"))
        if runtime_mode:
            given[RUNTIME_MODE.key] = runtime_mode
        for key, value in given.items():
            options.check_at_set(
                text(key, "The key of an option"), text(value, f"The value of option '{key}'")
            )
        context = SessionContext(Configuration(given))
        for key, value in given.items():
            context.warn_of(key, value)
        return cls(context)

    def execute_sql(self, statement: str) -> TableResult:
        """Runs one statement. A streaming SELECT or INSERT is still running when this returns.

        >>> env.execute_sql("SHOW CATALOGS").print()
        """
        return self.execute(parse_statement(text(statement, "The statement of execute_sql()")))

    def execute(self, statement: s.Statement) -> TableResult:
        """Runs a parsed statement, as ``execute_sql`` does."""
        return dispatch.execute(statement, self.context)

    def execute_script(self, script: str) -> Iterator[TableResult]:
        """The results of a script's statements. Each statement runs when the iteration reaches it."""
        for statement in parse_script(text(script, "The script of execute_script()")):
            yield self.execute(statement)

    def sql_query(self, query: str) -> Table:
        """A query as a Table. It is checked now, and runs on ``execute``, ``to_pandas`` or ``to_spark``.

        >>> env.sql_query("SELECT * FROM (VALUES (1, 'a')) AS t (n, s)").execute().print()
        """
        parsed = parse_statement(text(query, "The query of sql_query()"))
        if not isinstance(parsed, s.Query):
            raise ValidationError("sql_query() takes a query: SELECT, VALUES, WITH or a set operation")
        return Table(self.context, parsed)

    def from_path(self, path: str) -> Table:
        """A registered table or view as a Table. ``path`` is a name as in SQL, with backquotes if needed."""
        return self.sql_query(f"SELECT * FROM {text(path, 'The path of from_path()')}")

    def from_pandas(self, frame: pd.DataFrame, schema: Schema = None) -> Table:
        """A pandas frame as a Table. ``schema`` is a list of column names, or ``ROW<name TYPE, ...>``."""
        return self._unnamed(arrow_in.from_pandas(frame, schema))

    def from_elements(self, elements: Iterable[Any], schema: Schema = None) -> Table:
        """Tuples, or single values, as a Table. ``schema`` is as in ``from_pandas``.

        >>> env.from_elements([(1, "a"), (2, "b")], "ROW<n INT, s STRING>")
        """
        return self._unnamed(arrow_in.from_elements(elements, schema))

    def create_temporary_view(self, path: str, table: Table | DataFrame | pd.DataFrame) -> None:
        """Names a Table, a Spark DataFrame or a pandas DataFrame in the current catalog and database."""
        named = self.context.catalogs.qualify(_parts(path))
        if isinstance(table, Table):
            table.check_belongs(self.context)
            self._create_view(named, table)
        elif dataframe_types.is_frame(table):
            fields = dataframe_types.flink_fields(table)
            self._register(named, fields, dataframe_types.carrier_frame(table, fields))
        elif arrow_in.is_pandas(table):
            self._register_rows(named, arrow_in.from_pandas(table, None))
        else:
            raise ValidationError(
                f"create_temporary_view() takes a Table, a Spark or a pandas DataFrame, not {shown(table)}"
            )

    def _create_view(self, named: ObjectPath, table: Table) -> None:
        self.context.catalogs.create(
            view_text.stored_view(
                self.context, CatalogView(path=named, text=table.query.text, temporary=True)
            )
        )

    def _unnamed(self, rows: ProgramRows) -> Table:
        path = self.context.catalogs.qualify((f"{UNNAMED}{len(self.context.frames)}",))
        self._register_rows(path, rows)
        return self.from_path(f"`{path.catalog}`.`{path.database}`.`{path.name}`")

    def _register_rows(self, path: ObjectPath, rows: ProgramRows) -> None:
        self._register(
            path, rows.fields, rows.frame(spark_session.spark_application(self.context.configuration))
        )

    def _register(self, path: ObjectPath, fields: tuple[Field, ...], frame: DataFrame) -> None:
        key = str(path)
        self.context.catalogs.create(CatalogFrame(path=path, key=key, fields=fields))
        self.context.frames[key] = frame

    def create_temporary_function(self, path: str, function: Any) -> None:
        """Registers a function of this program, for the current database.

        ``function`` is the result of ``udf``, ``udtf`` or ``udaf``, or a plain function with annotated types.

        >>> env.create_temporary_function("plus_one", udf(lambda n: n + 1, result_type="BIGINT"))
        """
        named = self.context.catalogs.qualify(_parts(path))
        self._create_function(named.name, named, function)

    def create_temporary_system_function(self, name: str, function: Any) -> None:
        """Registers a function for every database. It hides a built-in function of the same name."""
        self._create_function(name, None, function)

    def _create_function(self, name: str, path: ObjectPath | None, function: Any) -> None:
        declared = user_modules.registered(name, function)
        made = CatalogFunction(
            name=name,
            path=path,
            implementation=f"{getattr(declared.body, '__module__', '')}.{declared.name}",
            language="PYTHON",
            temporary=True,
            declared=declared,
        )
        self.context.catalogs.functions.create(made, ignore_if_exists=False)

    def drop_temporary_function(self, path: str) -> bool:
        """Drops a function; False if there was no such function."""
        return self._drop_function(_parts(path), system=False)

    def drop_temporary_system_function(self, name: str) -> bool:
        """Drops a function; False if there was no such function."""
        return self._drop_function((name,), system=True)

    def _drop_function(self, parts: tuple[str, ...], *, system: bool) -> bool:
        try:
            self.context.catalogs.functions.drop(
                parts, temporary=True, system=system, ignore_if_missing=False
            )
        except ValidationError:
            return False
        return True

    def drop_temporary_view(self, path: str) -> bool:
        """Drops a view; False if there was no such view."""
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
        """The plans of a query or INSERT, as EXPLAIN prints them. ``details`` are such as CHANGELOG_MODE."""
        words = ", ".join(arguments.details(details)) or "PLAN FOR"
        explained = text(statement, "The statement of explain_sql()")
        result = self.execute_sql(f"EXPLAIN {words} {explained}")
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
    parsed = parse_statement(f"DESCRIBE {text(path, 'A name')}")
    assert isinstance(parsed, s.Describe)
    return parsed.path
