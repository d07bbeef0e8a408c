"""One handler per kind of statement. Its module is loaded for the first such statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidemill.late import loaded
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult
from tidemill.sql import statements as s

Handler = Callable[[Any, SessionContext], TableResult]


def execute(statement: s.Statement, context: SessionContext) -> TableResult:
    """Runs one statement; raises TidemillError."""
    context.catalogs.refresh()
    context.statement = statement.text
    return handler(type(statement))(statement, context)


def handler(kind: type[s.Statement]) -> Handler:
    """What runs the statements of a kind."""
    module, _, name = HANDLERS[kind].partition(".")
    found: Handler = getattr(loaded(f"tidemill.session.statements.{module}"), name)
    return found


def load() -> None:
    """Loads what runs statements of all kinds. In a server no statement should be the one that waits."""
    for kind in HANDLERS:
        handler(kind)


HANDLERS: dict[type[s.Statement], str] = {
    s.Query: "queries.query",
    s.Insert: "insert.insert",
    s.StatementSet: "insert.statement_set",
    s.CompilePlan: "compiled_plans.compile_plan",
    s.ExecutePlan: "compiled_plans.execute_plan",
    s.Explain: "explain.explain",
    s.AlterJob: "jobs.alter_job",
    s.AlterMaterializedTable: "materialized.alter",
    s.CreateTable: "create_table.create_table",
    s.AlterTable: "alter_table.alter_table",
    s.CreateView: "views.create_view",
    s.AlterView: "views.alter_view",
    s.DropTable: "drop.drop_table",
    s.TruncateTable: "row_changes.truncate",
    s.Delete: "row_changes.delete",
    s.Update: "row_changes.update",
    s.Merge: "row_changes.merge",
    s.DropMaterializedTable: "drop.drop_materialized_table",
    s.DropView: "drop.drop_view",
    s.DropCatalog: "drop.drop_catalog",
    s.DropDatabase: "drop.drop_database",
    s.DropFunction: "drop.drop_function",
    s.CreateCatalog: "namespaces.create_catalog",
    s.CreateDatabase: "namespaces.create_database",
    s.AlterDatabase: "namespaces.alter_database",
    s.CreateFunction: "namespaces.create_function",
    s.UseCatalog: "namespaces.use_catalog",
    s.UseDatabase: "namespaces.use_database",
    s.UseModules: "namespaces.use_modules",
    s.LoadModule: "namespaces.load_module",
    s.UnloadModule: "namespaces.unload_module",
    s.AlterCatalog: "namespaces.alter_catalog",
    s.AlterFunction: "namespaces.alter_function",
    s.DescribeCatalog: "describe.describe_catalog",
    s.DescribeFunction: "describe.describe_function",
    s.CreateModel: "models.create_model",
    s.AlterModel: "models.alter_model",
    s.DropModel: "models.drop_model",
    s.DescribeModel: "models.describe_model",
    s.Show: "show.show",
    s.Describe: "describe.describe",
    s.SetOption: "options.set_option",
    s.ResetOption: "options.reset_option",
    s.AddJar: "unsupported.jars",
    s.RemoveJar: "unsupported.jars",
    s.StopJob: "jobs.stop_job",
    s.VerifyJob: "jobs.verify_job",
    s.DescribeJob: "jobs.describe_job",
    s.CreateSavepoint: "savepoints.create_savepoint",
    s.BuildSavepoint: "build_savepoint.build_savepoint",
    s.ShowSavepoints: "savepoints.show_savepoints",
    s.DescribeSavepoint: "savepoints.describe_savepoint",
    s.DiffSavepoint: "savepoints.diff_savepoint",
    s.DropSavepoint: "savepoints.drop_savepoint",
    s.Unsupported: "unsupported.unsupported",
}
"""A module of ``session.statements``, and a function of it."""
