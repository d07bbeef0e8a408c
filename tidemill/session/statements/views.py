"""CREATE VIEW and ALTER VIEW. The query is checked now, and its names and stars get their meaning."""

from __future__ import annotations

from dataclasses import replace

from tidemill.catalog.manager import quoted
from tidemill.catalog.table import CatalogView, ObjectPath
from tidemill.errors import NotSupportedError, Position, ValidationError
from tidemill.session import binding
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, ok
from tidemill.session.schema import view_text
from tidemill.sql import statements as s


def create_view(statement: s.CreateView, context: SessionContext) -> TableResult:
    path = context.catalogs.qualify(statement.path)
    view = CatalogView(
        path=path,
        text=statement.query_text,
        column_names=_column_names(statement, context),
        comment=statement.comment,
        temporary=statement.temporary,
    )
    kept = view_text.stored_view(context, view, statement.query_position)
    context.catalogs.create(kept, ignore_if_exists=statement.if_not_exists)
    return ok()


def alter_view(statement: s.AlterView, context: SessionContext) -> TableResult:
    path = context.catalogs.qualify(statement.path)
    view = context.catalogs.find_permanent(path)
    if not isinstance(view, CatalogView):
        raise ValidationError(
            f"View {quoted(path)} doesn't exist or is a temporary view.", position=statement.position
        )
    if statement.rename:
        context.catalogs.rename(path, _new_name(statement, path, context))
        return ok()
    assert statement.query is not None
    binding.bind(
        context, s.Query(text=statement.query_text, position=statement.position, tree=statement.query)
    )
    changed = replace(view, text=statement.query_text, column_names=())
    context.catalogs.replace(view_text.stored_view(context, changed, statement.query_position))
    return ok()


def _new_name(statement: s.AlterView, path: ObjectPath, context: SessionContext) -> str:
    target = context.catalogs.qualify(statement.rename)
    if len(statement.rename) > 1 and (target.catalog, target.database) != (path.catalog, path.database):
        raise NotSupportedError(
            "Moving a view to another database is not supported", position=statement.position
        )
    return target.name


def _column_names(statement: s.CreateView, context: SessionContext) -> tuple[str, ...]:
    """The view's declared column names, checked against its query; () where it declares none."""
    query = s.Query(text=statement.query_text, position=statement.query_position, tree=statement.query)
    names = list(binding.column_names(context, query))
    _check_unique(list(statement.columns) or names, statement.query_position)
    if statement.columns and len(statement.columns) != len(names):
        raise ValidationError(
            "VIEW definition and input fields not match:\n"
            f"\tDef fields: [{', '.join(statement.columns)}].\n\tInput fields: [{', '.join(names)}].",
            position=statement.position,
        )
    return statement.columns


def _check_unique(names: list[str], position: Position) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValidationError(
                f"A column with the same name `{name}` has been defined at {position}.", position=position
            )
