"""Models: CREATE, ALTER, DROP, DESCRIBE. They are kept and shown; ML_PREDICT, which would call one, is not
there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemill.catalog.manager import quoted
from tidemill.catalog.objects import CatalogModel
from tidemill.catalog.table import Column
from tidemill.errors import ValidationError
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, listing, ok
from tidemill.session.schema.columns import declared
from tidemill.sql import statements as s
from tidemill.types.logical import BOOLEAN, STRING, Field

_COLUMNS = (
    Field("name", STRING),
    Field("type", STRING),
    Field("null", BOOLEAN),
    Field("is input", BOOLEAN),
)


def create_model(statement: s.CreateModel, context: SessionContext) -> TableResult:
    _check_unique("input", statement.inputs)
    _check_unique("output", statement.outputs)
    model = CatalogModel(
        path=context.catalogs.qualify(statement.path),
        inputs=tuple(map(declared, statement.inputs)),
        outputs=tuple(map(declared, statement.outputs)),
        options=dict(statement.options),
        comment=statement.comment,
        temporary=statement.temporary,
    )
    context.catalogs.models.create(model, ignore_if_exists=statement.if_not_exists)
    return ok()


def _check_unique(word: str, columns: Sequence[s.PhysicalColumn]) -> None:
    names = [column.name for column in columns]
    for column in columns:
        if names.count(column.name) > 1:
            message = f"Duplicate {word} column name: '{column.name}'."
            raise ValidationError(message, position=column.position)


def alter_model(statement: s.AlterModel, context: SessionContext) -> TableResult:
    path, models = context.catalogs.qualify(statement.path), context.catalogs.models
    model = models.find_permanent(path)
    if model is None:
        if statement.if_exists:
            return ok()
        raise ValidationError(f"Model {quoted(path)} doesn't exist.", position=statement.position)
    match statement.change:
        case s.RenameTable(to=to):
            _rename(model, to, statement, context)
        case s.SetOptions(options=options):
            if not options:
                raise ValidationError("ALTER MODEL SET does not support empty option.")
            models.replace(replace(model, options={**model.options, **dict(options)}))
        case s.ResetOptions(keys=keys):
            if not keys:
                raise ValidationError("ALTER MODEL RESET does not support empty key")
            models.replace(replace(model, options={k: v for k, v in model.options.items() if k not in keys}))
    return ok()


def _rename(model: CatalogModel, to: s.Path, statement: s.AlterModel, context: SessionContext) -> None:
    target = context.catalogs.qualify(to)
    if target.catalog != model.path.catalog or (len(to) > 1 and target.database != model.path.database):
        raise ValidationError(
            "A model stays in its database when it is renamed.", position=statement.position
        )
    context.catalogs.models.rename(model, target.name)


def drop_model(statement: s.DropModel, context: SessionContext) -> TableResult:
    context.catalogs.models.drop(
        context.catalogs.qualify(statement.path),
        temporary=statement.temporary,
        ignore_if_missing=statement.if_exists,
    )
    return ok()


def describe_model(statement: s.DescribeModel, context: SessionContext) -> TableResult:
    path = context.catalogs.qualify(statement.path)
    model = context.catalogs.models.find(path)
    if model is None:
        raise ValidationError(
            f"Model with the identifier '{path}' doesn't exist.", position=statement.position
        )
    columns = [(c, True) for c in model.inputs] + [(c, False) for c in model.outputs]
    if not any(column.comment for column, _ in columns):
        return listing(_COLUMNS, [_row(*column) for column in columns])
    rows = [(*_row(column, is_input), column.comment or None) for column, is_input in columns]
    return listing((*_COLUMNS, Field("comment", STRING)), rows)


def _row(column: Column, is_input: bool) -> tuple[str, str, bool, bool]:
    return column.name, str(column.type.with_nullable(True)), column.type.nullable, is_input
