"""The text of a view's query: as the catalog keeps it, and as SHOW CREATE prints it.

A view has the columns that are there when it is made. ``CREATE VIEW v AS SELECT * FROM t`` keeps
``SELECT `t`.`a`, `t`.`b` FROM `default_catalog`.`default_database`.`t` AS `t```: if the table gets another
column, the view does not have it, and if a column goes, the view fails by that column's name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidemill.catalog.table import CatalogView
from tidemill.deep_calls import with_room
from tidemill.errors import NotSupportedError, Position, TidemillError
from tidemill.plan import nodes as n
from tidemill.plan.binder.binder import Binder
from tidemill.session.context import SessionContext
from tidemill.sql import statements as s
from tidemill.sql.full_text.names import Unprintable
from tidemill.sql.full_text.queries import full_text
from tidemill.sql.full_text.stars import without_stars
from tidemill.sql.parser import parse_statement


def stored_view(
    context: SessionContext, written: CatalogView, position: Position | None = None
) -> CatalogView:
    """The view as the catalog keeps it; ``written`` has the text at ``position``, and the declared names."""
    fields = Binder(context).bind_query(_query(written.text).tree).fields
    return replace(
        written,
        text=stored_text(context, written.text, position),
        column_names=written.column_names or tuple(f.name for f in fields),
        column_types=tuple(f.type for f in fields),
        default_catalog=context.current_catalog,
        default_database=context.current_database,
    )


def stored_text(context: SessionContext, text: str, position: Position | None) -> str:
    """The query with every name in full; where it has no such form, as it was written but for its stars."""
    tree = _query(text).tree
    plan, names = Binder(context).full_names(tree)
    for form in (
        lambda: full_text(tree, names, rewritten=False),
        lambda: without_stars(text, tree, names),
    ):
        found = _made(form)
        if found == text or (found is not None and _plan(context, found) == plan):
            return found
    raise NotSupportedError(
        "A view whose * stands for columns that no name tells apart is not supported",
        position=position,
        hint="Name the columns, or give each subquery in FROM an alias.",
    )


def display_text(context: SessionContext, view: CatalogView) -> str:
    """The view's query with every name in full, in Flink's words; as it is kept if it has no such form. The
    text is bound again, from where it will be read: it must mean the same."""
    tree = _query(view.text).tree
    home = Binder(context, catalog=view.default_catalog, database=view.default_database)
    try:
        plan, names = home.full_names(tree)
    except TidemillError:
        return view.text
    text = _made(lambda: full_text(tree, names))
    same_words = _made(lambda: full_text(tree, names, rewritten=False))
    if text is None or same_words is None or _plan(context, same_words) != plan:
        return view.text
    again = _plan(context, text)
    return text if again is not None and again.fields == plan.fields else view.text


def _made(form: Callable[[], str]) -> str | None:
    try:
        return with_room(form)
    except Unprintable:
        return None


def _plan(context: SessionContext, text: str) -> n.LogicalNode | None:
    """None where the text means nothing."""
    try:
        return Binder(context).bind_query(_query(text).tree)
    except TidemillError:
        return None


def _query(text: str) -> s.Query:
    statement = parse_statement(text)
    assert isinstance(statement, s.Query)
    return statement
