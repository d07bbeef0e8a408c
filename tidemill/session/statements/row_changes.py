"""Statements that change the rows of a table where it lies: DELETE, UPDATE, MERGE INTO, TRUNCATE TABLE; in
batch mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidemill.catalog.table import CatalogTable
from tidemill.config.sink_options import NOT_NULL_ENFORCER, TYPE_LENGTHS
from tidemill.connectors.api import ChangingConnector, RewritingConnector, TruncatingConnector
from tidemill.connectors.registry import connector, validate
from tidemill.errors import NotSupportedError, Position, ValidationError
from tidemill.files.file_snapshot import file_snapshot
from tidemill.plan import nodes as n
from tidemill.plan.binder.binder import Binder
from tidemill.plan.binder.queries.rewriting import tables_below
from tidemill.plan.column_filters import scan_filters
from tidemill.plan.constant_updates import assigned_constants
from tidemill.session import binding, execution, inserts, selects
from tidemill.session.context import SessionContext
from tidemill.session.mode import is_batch
from tidemill.session.result import TableResult, ok
from tidemill.sql import statements as s


def truncate(statement: s.TruncateTable, context: SessionContext) -> TableResult:
    if not is_batch(context):
        raise ValidationError(
            "TRUNCATE TABLE statement is not supported in streaming mode.", position=statement.position
        )
    table = _table(statement.path, statement.position, context)
    found = validate(table, table.options, role="sink")
    if not isinstance(found, TruncatingConnector):
        raise NotSupportedError(
            f"TRUNCATE TABLE of a table of connector '{found.identifier}'", position=statement.position
        )
    found.truncate(table, table.options)
    return ok()


def delete(statement: s.Delete, context: SessionContext) -> TableResult:
    done = _without_key(statement, "DELETE", context)
    if done is not None:
        return done
    table, _ = _by_key(statement, "DELETE", context)
    return inserts.run_inserts(context, [Binder(context).bind_delete(statement, table)])


def update(statement: s.Update, context: SessionContext) -> TableResult:
    done = _without_key(statement, "UPDATE", context)
    if done is not None:
        return done
    table, fixed = _by_key(statement, "UPDATE", context)
    return inserts.run_inserts(context, [Binder(context).bind_update(statement, table, fixed)])


def merge(statement: s.Merge, context: SessionContext) -> TableResult:
    table, fixed = _by_key(statement, "MERGE", context)
    return inserts.run_inserts(context, [Binder(context).bind_merge(statement, table, fixed)])


def _files(
    statement: s.Delete | s.Update, word: str, context: SessionContext
) -> tuple[CatalogTable, RewritingConnector] | None:
    """The table and its connector if the rows of the table are in files that are written anew; None for a
    table whose rows change by key."""
    if not is_batch(context):
        return None
    table = _table(statement.target, statement.target_position, context)
    found = validate(table, table.options, role="sink")
    with _at(statement.position):
        by_key = found.changes_rows and found.fixed_columns(table, table.options) is not None
    if by_key or not isinstance(found, RewritingConnector):
        return None
    with _at(statement.position):
        found.check_rewriting(table, word)
    return table, found


def _rewrite(
    statement: s.Delete | s.Update,
    word: str,
    table: CatalogTable,
    found: RewritingConnector,
    context: SessionContext,
) -> TableResult:
    """1. Asks which files have rows to change, and how many. 2. Writes the rows of these files anew, with the
    changes, and replaces the files, or the rows. Both steps see the files as they were at the beginning."""
    _check_enforcers(word, statement.position, context)
    with file_snapshot():
        Binder(context).bind_rewriting(statement, table)  # for its errors, also if no file has rows to change
        affected = Binder(context).bind_affected(statement, table, found.row_file)
        _check_subqueries(affected, word, statement.position)
        files = {row[0]: int(row[1]) for row in selects.run_query(context, affected).collect()}
        if not files:
            return inserts.inserted_nothing(context, table)
        with _at(statement.position):
            part = found.rewritten(table, files, word, context.time_zone, context.permissions.fence)
        return inserts.run_inserts(context, [Binder(context).bind_rewriting(statement, part)])


def _check_enforcers(word: str, position: Position, context: SessionContext) -> None:
    """A sink's constraints must not change the rows that stay, or leave them out."""
    for option, value in ((NOT_NULL_ENFORCER, "DROP"), (TYPE_LENGTHS, "TRIM_PAD")):
        if context.configuration.read(option).upper() == value:
            raise NotSupportedError(
                f"{word} of files with '{option.key}' = '{value}', which may change other rows of them",
                position=position,
                hint=f"RESET '{option.key}' first.",
            )


def _check_subqueries(plan: n.LogicalNode, word: str, position: Position) -> None:
    """Both steps must see the same rows in them."""
    for scan in tables_below(plan):
        read = connector(dict(scan.options)) if isinstance(scan, n.Scan) else None
        if not isinstance(read, RewritingConnector):
            what = "a DataFrame" if read is None else f"a table of connector '{read.identifier}'"
            raise NotSupportedError(
                f"{word} of files with a condition that reads {what}",
                position=position,
                hint="Copy the rows into a table of files first.",
            )


def _by_condition(statement: s.Delete | s.Update, word: str, context: SessionContext) -> TableResult | None:
    """The result of a statement that the table's own system runs; None for tables that have a key, or no such
    system."""
    if not is_batch(context):
        return None
    table = _table(statement.target, statement.target_position, context)
    found = validate(table, table.options, role="sink")
    if table.primary_key or not isinstance(found, ChangingConnector):
        return None
    binder = Binder(context)
    if isinstance(statement, s.Delete):
        bound = binder.bind_delete(statement, table)
    else:
        bound = binder.bind_update(statement, table, ())
    plan = execution.optimized_insert(bound).input
    if isinstance(plan, n.Values) and not plan.rows:
        return inserts.inserted_nothing(context, table)
    filters = scan_filters(plan)
    values = assigned_constants(plan, table.written_columns) if isinstance(statement, s.Update) else None
    if filters is None:
        raise NotSupportedError(
            f"{word} of a table without a primary key by this condition",
            position=statement.position,
            hint="It can compare columns with constants: =, IN, BETWEEN, IS NULL, AND, OR; or declare the"
            " key of the table: PRIMARY KEY (...) NOT ENFORCED.",
        )
    if values is None and isinstance(statement, s.Update):
        raise NotSupportedError(
            "UPDATE of a table without a primary key to values that are not constants of the columns' types",
            position=statement.position,
            hint="Whole numbers, texts, dates, booleans and NULL can be set; or declare the key of the table:"
            " PRIMARY KEY (...) NOT ENFORCED.",
        )
    if values == {}:
        return inserts.inserted_nothing(context, table)
    with _at(statement.position):
        found.change(table, table.options, filters, values)
    return inserts.inserted_nothing(context, table)


@contextmanager
def _at(position: Position) -> Iterator[None]:
    """Refusals from inside are at ``position``."""
    try:
        yield
    except NotSupportedError as e:
        e.position = e.position or position
        raise


def _without_key(statement: s.Delete | s.Update, word: str, context: SessionContext) -> TableResult | None:
    """Changes the files that have such rows, or leaves it to the outside system; None for a table by key."""
    rewriting = _files(statement, word, context)
    if rewriting is not None:
        return _rewrite(statement, word, *rewriting, context)
    return _by_condition(statement, word, context)


def _by_key(
    statement: s.Delete | s.Update | s.Merge, word: str, context: SessionContext
) -> tuple[CatalogTable, tuple[str, ...]]:
    """The table, and its columns that cannot be set. NotSupportedError for one whose rows cannot be found
    again by their key."""
    if not is_batch(context):
        raise ValidationError(
            f"{word} statement is not supported for streaming mode now.", position=statement.position
        )
    table = _table(statement.target, statement.target_position, context)
    found = validate(table, table.options, role="sink")
    if not found.changes_rows:
        raise NotSupportedError(
            f"{word} of a table of connector '{found.identifier}'", position=statement.position
        )
    with _at(statement.position):
        fixed = found.fixed_columns(table, table.options)
    if fixed is None:
        raise NotSupportedError(
            f"{word} of a table without a primary key",
            position=statement.position,
            hint="Declare the key of the table: PRIMARY KEY (...) NOT ENFORCED.",
        )
    return table, fixed


def _table(path: tuple[str, ...], position: Position, context: SessionContext) -> CatalogTable:
    """The table whose rows change."""
    full = context.catalogs.qualify(path)
    found = context.catalogs.find(full)
    if not isinstance(found, CatalogTable):
        what = "doesn't exist" if found is None else "is a view"
        raise ValidationError(
            f"Table `{full.catalog}`.`{full.database}`.`{full.name}` {what}.",
            position=position,
            hint=binding.did_you_mean(context.catalogs.nearest(path)) if found is None else "",
        )
    context.permissions.check_table(found, found.options, position)
    return found
