"""DELETE and UPDATE as plans: which rows the sink gets, and what is refused where."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.plan.environment import FakeEnvironment
from tidemill.catalog.table import CatalogTable
from tidemill.errors import NotSupportedError, SqlSyntaxError, TidemillError, ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.binder.binder import Binder
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement


def bound(text: str) -> n.Sink:
    environment = FakeEnvironment()
    table = replace(
        environment.add_table("t", id="INT NOT NULL", a="BIGINT", b="STRING"), primary_key=("id",)
    )
    environment.objects[table.path] = table
    environment.add_table("u", x="INT")
    return planned(environment, table, parse_statement(text))


def planned(environment: FakeEnvironment, table: CatalogTable, statement: s.Statement) -> n.Sink:
    if isinstance(statement, s.Delete):
        return Binder(environment).bind_delete(statement, table)
    assert isinstance(statement, s.Update)
    return Binder(environment).bind_update(statement, table, table.primary_key)


def test_the_rows_that_a_delete_takes_out() -> None:
    sink = bound("DELETE FROM default_catalog.default_database.t WHERE t.a > 1 AND id IN (SELECT x FROM u)")
    assert sink.deletes
    assert [f.name for f in sink.fields] == ["id", "a", "b"]
    assert isinstance(sink.input, n.Project)
    assert isinstance(sink.input.input, n.Filter)
    everything = bound("DELETE FROM t")
    assert isinstance(everything.input, n.Project)
    assert isinstance(everything.input.input, n.Scan)


def test_the_rows_that_an_update_writes_again() -> None:
    sink = bound("UPDATE t SET b = UPPER(b), a = id + 1 WHERE b IS NOT NULL")
    assert not sink.deletes
    assert [str(f.type) for f in sink.fields] == ["INT NOT NULL", "BIGINT", "STRING"]


@pytest.mark.parametrize(
    ("text", "error", "message", "column"),
    [
        ("UPDATE t SET id = 1", NotSupportedError, "UPDATE of the column 'id' of the primary key", 14),
        ("UPDATE t SET c = 1", ValidationError, "Unknown target column 'c'", 14),
        ("UPDATE t SET a = 1, a = 2", ValidationError, "'a' is assigned more than once", 21),
        ("UPDATE t SET a = c", ValidationError, "'c'", 18),
        ("DELETE FROM t WHERE c = 1", ValidationError, "'c'", 21),
        ("DELETE FROM t WHERE a", ValidationError, "WHERE", 21),
        ("DELETE t", SqlSyntaxError, "t", 8),
        ("UPDATE t WHERE a = 1", SqlSyntaxError, "WHERE", 10),
    ],
)
def test_what_is_wrong_is_said_at_its_place(
    text: str, error: type[TidemillError], message: str, column: int
) -> None:
    with pytest.raises(error, match=message) as found:
        bound(text)
    assert found.value.position is not None
    assert found.value.position.column == column
