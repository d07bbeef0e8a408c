"""DELETE, UPDATE and MERGE INTO as plans: which rows the sink gets, and what is refused where."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.plan.environment import FakeEnvironment
from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import RowKind
from tidemill.errors import NotSupportedError, SqlSyntaxError, TidemillError, ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.binder.binder import Binder
from tidemill.plan.expressions import Call
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement

MERGE = "MERGE INTO t USING u AS s ON t.id = s.x WHEN MATCHED"
NO_MATCH = MERGE.replace("MATCHED", "NOT MATCHED")


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
    if isinstance(statement, s.Merge):
        return Binder(environment).bind_merge(statement, table, table.primary_key)
    assert isinstance(statement, s.Update)
    return Binder(environment).bind_update(statement, table, table.primary_key)


def test_the_rows_that_a_delete_takes_out() -> None:
    sink = bound("DELETE FROM default_catalog.default_database.t WHERE t.a > 1 AND id IN (SELECT x FROM u)")
    assert sink.kinds == {RowKind.DELETE}
    assert [f.name for f in sink.fields] == ["id", "a", "b"]
    assert isinstance(sink.input, n.Project)
    assert isinstance(sink.input.input, n.Filter)
    everything = bound("DELETE FROM t")
    assert isinstance(everything.input, n.Project)
    assert isinstance(everything.input.input, n.Scan)


def test_the_rows_that_an_update_writes_again() -> None:
    sink = bound("UPDATE t SET b = UPPER(b), a = id + 1 WHERE b IS NOT NULL")
    assert sink.kinds == {RowKind.INSERT}
    assert [str(f.type) for f in sink.fields] == ["INT NOT NULL", "BIGINT", "STRING"]


def join_kinds(node: n.LogicalNode) -> list[str]:
    own = [node.kind.name] if isinstance(node, n.Join) else []
    return [*own, *(kind for below in node.inputs for kind in join_kinds(below))]


def test_the_rows_of_a_merge_have_a_kind() -> None:
    sink = bound(f"{MERGE} THEN DELETE WHEN NOT MATCHED THEN INSERT (id, b) VALUES (x, 'new')")
    assert sink.merges
    assert sink.kinds == {RowKind.INSERT, RowKind.DELETE}
    assert [f.name for f in sink.fields] == ["id", "a", "b"]
    assert len(sink.input.fields) == 4
    assert join_kinds(sink) == ["LEFT"]
    updating = bound(f"{MERGE} THEN UPDATE SET t.a = s.x")
    assert updating.kinds == {RowKind.INSERT}
    assert join_kinds(updating) == ["INNER"]


def test_each_value_of_a_merge_takes_the_type_of_its_column() -> None:
    """In the common type of all values the amount of the other clause would lose digits."""
    environment = FakeEnvironment()
    amount = "DECIMAL(20, 2)"
    table = replace(environment.add_table("t", id="INT NOT NULL", a=amount, b="STRING"), primary_key=("id",))
    environment.objects[table.path] = table
    environment.add_table("u", x="DOUBLE")
    text = "MERGE INTO t USING u ON t.id = 1 WHEN MATCHED AND x > 1 THEN UPDATE SET a = x"
    sink = planned(environment, table, parse_statement(f"{text} WHEN MATCHED THEN UPDATE SET b = 'kept'"))
    assert isinstance(sink.input, n.Project)
    case = sink.input.expressions[1]
    assert isinstance(case, Call)
    assert [str(x.type) for x in case.args[1::2]] == [amount, amount]


@pytest.mark.parametrize(
    ("text", "error", "message", "column"),
    [
        ("UPDATE t SET id = 1", NotSupportedError, "UPDATE of the column 'id' of the primary key", 14),
        ("UPDATE t SET c = 1", ValidationError, "Unknown target column 'c'", 14),
        ("UPDATE t SET a = 1, a = 2", ValidationError, "'a' is assigned more than once", 21),
        ("UPDATE t SET a = c", ValidationError, "'c'", 18),
        (f"{MERGE} THEN UPDATE SET id = 1", NotSupportedError, "UPDATE of the column 'id'", 70),
        (f"{MERGE} THEN UPDATE SET u.a = 1", SqlSyntaxError, "'u' is not the target", 70),
        (f"{MERGE} THEN UPDATE SET c = 1", ValidationError, "Unknown target column 'c'", 70),
        (f"{MERGE} THEN UPDATE SET a = 1, a = 2", ValidationError, "'a' is assigned more than once", 77),
        (f"{MERGE} THEN UPDATE SET a = 'x' WHEN MATCHED THEN DELETE", ValidationError, "No row reaches", 78),
        (f"{MERGE} THEN UPDATE SET *", NotSupportedError, r"UPDATE \* of MERGE INTO", 70),
        (f"{MERGE} AND RAND() > 0.5 THEN DELETE", NotSupportedError, "non-deterministic function", 1),
        (f"{MERGE} AND c THEN DELETE", ValidationError, "'c'", 58),
        (
            f"{MERGE} THEN UPDATE SET a = 'x'",
            ValidationError,
            "is not written to BIGINT",
            74,
        ),
        (f"{MERGE} THEN UPDATE SET a = SUM(x)", ValidationError, "Aggregate expression is illegal", 74),
        (f"{MERGE} THEN INSERT VALUES (1)", SqlSyntaxError, "INSERT", 59),
        (f"{NO_MATCH} THEN INSERT VALUES (1)", ValidationError, "3 columns and has 1 values", 41),
        (f"{NO_MATCH} THEN INSERT (a) VALUES (1)", ValidationError, "'id' has no default value", 41),
        (f"{NO_MATCH} BY SOURCE THEN DELETE", NotSupportedError, "WHEN NOT MATCHED BY", 58),
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
