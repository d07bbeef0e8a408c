"""One handler per kind of statement."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult
from tidemill.session.statements import (
    alter_table,
    build_savepoint,
    compiled_plans,
    create_table,
    describe,
    drop,
    jobs,
    materialized,
    models,
    namespaces,
    options,
    queries,
    row_changes,
    savepoints,
    show,
    views,
)
from tidemill.sql import statements as s

Handler = Callable[[Any, SessionContext], TableResult]


def execute(statement: s.Statement, context: SessionContext) -> TableResult:
    """Runs one statement; raises TidemillError."""
    context.catalogs.refresh()
    context.statement = statement.text
    return HANDLERS[type(statement)](statement, context)


def _unsupported(statement: s.Unsupported, context: SessionContext) -> TableResult:
    raise NotSupportedError(f"{statement.feature} is not supported", position=statement.position)


def _jars(statement: s.AddJar | s.RemoveJar, context: SessionContext) -> TableResult:
    context.permissions.check_place(statement.jar, "ADD JAR", statement.position)
    if isinstance(statement, s.AddJar) and "://" not in statement.jar and not os.path.exists(statement.jar):
        raise ValidationError(
            f"jar or artifact resource [{statement.jar}] not found.", position=statement.position
        )
    raise NotSupportedError(
        "ADD JAR and REMOVE JAR are not supported",
        position=statement.position,
        hint="Connectors and functions are Python; jars for Spark go into 'spark.jars'.",
    )


HANDLERS: dict[type[s.Statement], Handler] = {
    s.Query: queries.query,
    s.Insert: queries.insert,
    s.StatementSet: queries.statement_set,
    s.CompilePlan: compiled_plans.compile_plan,
    s.ExecutePlan: compiled_plans.execute_plan,
    s.Explain: queries.explain,
    s.AlterJob: jobs.alter_job,
    s.AlterMaterializedTable: materialized.alter,
    s.CreateTable: create_table.create_table,
    s.AlterTable: alter_table.alter_table,
    s.CreateView: views.create_view,
    s.AlterView: views.alter_view,
    s.DropTable: drop.drop_table,
    s.TruncateTable: row_changes.truncate,
    s.Delete: row_changes.delete,
    s.Update: row_changes.update,
    s.Merge: row_changes.merge,
    s.DropMaterializedTable: drop.drop_materialized_table,
    s.DropView: drop.drop_view,
    s.DropCatalog: drop.drop_catalog,
    s.DropDatabase: drop.drop_database,
    s.DropFunction: drop.drop_function,
    s.CreateCatalog: namespaces.create_catalog,
    s.CreateDatabase: namespaces.create_database,
    s.AlterDatabase: namespaces.alter_database,
    s.CreateFunction: namespaces.create_function,
    s.UseCatalog: namespaces.use_catalog,
    s.UseDatabase: namespaces.use_database,
    s.UseModules: namespaces.use_modules,
    s.LoadModule: namespaces.load_module,
    s.UnloadModule: namespaces.unload_module,
    s.AlterCatalog: namespaces.alter_catalog,
    s.AlterFunction: namespaces.alter_function,
    s.DescribeCatalog: describe.describe_catalog,
    s.DescribeFunction: describe.describe_function,
    s.CreateModel: models.create_model,
    s.AlterModel: models.alter_model,
    s.DropModel: models.drop_model,
    s.DescribeModel: models.describe_model,
    s.Show: show.show,
    s.Describe: describe.describe,
    s.SetOption: options.set_option,
    s.ResetOption: options.reset_option,
    s.AddJar: _jars,
    s.RemoveJar: _jars,
    s.StopJob: jobs.stop_job,
    s.VerifyJob: jobs.verify_job,
    s.DescribeJob: jobs.describe_job,
    s.CreateSavepoint: savepoints.create_savepoint,
    s.BuildSavepoint: build_savepoint.build_savepoint,
    s.ShowSavepoints: savepoints.show_savepoints,
    s.DescribeSavepoint: savepoints.describe_savepoint,
    s.DiffSavepoint: savepoints.diff_savepoint,
    s.DropSavepoint: savepoints.drop_savepoint,
    s.Unsupported: _unsupported,
}
