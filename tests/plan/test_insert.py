"""INSERT: which columns go where, with which type, and what is refused in which words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.plan.environment import FakeEnvironment, sample
from tidemill.catalog.table import Column, ColumnKind
from tidemill.errors import Position, ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Cast, Expr, InputRef, Literal
from tidemill.types import logical as t


def sink(sql: str, environment: FakeEnvironment | None = None) -> n.Sink:
    plan = (environment or sample()).bind(sql)
    assert isinstance(plan, n.Sink)
    return plan


def expressions(plan: n.Sink) -> tuple[Expr, ...]:
    assert isinstance(plan.input, n.Project)
    return plan.input.expressions


def test_columns_go_by_position_and_are_cast() -> None:
    plan = sink("INSERT INTO k SELECT id, g, v FROM t")
    assert [(f.name, str(f.type)) for f in plan.fields] == [("a", "INT"), ("b", "STRING"), ("c", "BIGINT")]
    last = expressions(plan)[2]
    assert isinstance(last, Cast)
    assert (last.type, last.implicit) == (t.BIGINT, True)


def test_a_list_of_columns_goes_by_name_and_leaves_nulls() -> None:
    plan = sink("INSERT INTO k (b, a) SELECT g, id FROM t")
    first, second, third = expressions(plan)
    assert isinstance(first, InputRef)
    assert isinstance(second, InputRef)
    read = [f.name for f in plan.input.inputs[0].fields]
    assert (read[first.index], read[second.index]) == ("id", "g")
    assert third == Literal(type=t.BIGINT, value=None)
    assert plan.target_columns == ("b", "a")


def test_bare_nulls_take_the_sink_types() -> None:
    plan = sink("INSERT INTO k VALUES (1, NULL, NULL)")
    nulls = [x for x in expressions(plan) if isinstance(x, Cast | Literal)]
    assert [str(x.type) for x in nulls] == ["STRING", "BIGINT"]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("INSERT INTO k SELECT id, g FROM t", "Cause: Different number of columns."),
        (
            "INSERT INTO k SELECT id, v, v FROM t",
            "Cause: Incompatible types for sink column 'b' at position 2.\n\n"
            "Query schema: [id: INT NOT NULL, v: INT, v0: INT]\nSink schema:  [a: INT, b: STRING, c: BIGINT]",
        ),
        ("INSERT INTO k (a, zz) SELECT id, g FROM t", "Unknown target column 'zz'"),
        ("INSERT INTO k (a, a) SELECT id, id FROM t", "Target column 'a' is assigned more than once"),
        ("INSERT INTO w SELECT g, v FROM t", "is a view"),
        (
            "INSERT INTO kk SELECT g, v FROM t",
            "`default_database`.`kk`' in any of the catalogs",
        ),
    ],
)
def test_refusals(sql: str, message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        sample().bind(sql)
    assert message in raised.value.message
    assert raised.value.position == Position(1, 13)


def test_a_missing_not_null_column_is_refused() -> None:
    environment = sample()
    environment.add_table("strict", a="INT NOT NULL", b="INT")
    with pytest.raises(ValidationError, match="Column 'a' has no default value and does not allow NULLs"):
        environment.bind("INSERT INTO strict (b) SELECT v FROM t")


def test_computed_and_virtual_columns_are_not_written() -> None:
    environment = sample()
    table = environment.add_table("m", a="INT", b="INT")
    extra = (
        Column(name="double_a", type=t.INT, kind=ColumnKind.COMPUTED, expression="a * 2"),
        Column(name="at", type=t.BIGINT, kind=ColumnKind.METADATA, metadata_key="offset", virtual=True),
        Column(name="note", type=t.STRING, kind=ColumnKind.METADATA, metadata_key="note"),
    )
    environment.objects[table.path] = replace(table, columns=(*table.columns, *extra))
    plan = sink("INSERT INTO m SELECT id, v, s FROM t", environment)
    assert [f.name for f in plan.fields] == ["a", "b", "note"]
    read = environment.bind("SELECT * FROM m")
    assert [f.name for f in read.fields] == ["a", "b", "double_a", "at", "note"]


def test_hints_override_the_sink_options() -> None:
    plan = sink("INSERT INTO k /*+ OPTIONS('connector'='print') */ SELECT id, g, v FROM t")
    assert dict(plan.options) == {"connector": "print"}


def partitioned() -> FakeEnvironment:
    environment = sample()
    table = environment.add_table("p", a="INT", b="INT", d="STRING")
    environment.objects[table.path] = replace(table, partitioned_by=("d",))
    return environment


def test_a_static_partition_fixes_its_column() -> None:
    plan = sink("INSERT INTO p PARTITION (d='x') SELECT id, v FROM t", partitioned())
    assert plan.static_partition == (("d", "x"),)
    assert expressions(plan)[2] == Literal(type=t.STRING.with_nullable(False), value="x")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("INSERT INTO p PARTITION (a=1) SELECT 2, 'x'", "should be in the partition keys list [d]"),
        ("INSERT INTO p PARTITION (d='x') SELECT 1, 2, 'y'", "Different number of columns."),
        ("INSERT INTO p PARTITION (d=UPPER('x')) SELECT 1, 2", "must be a constant"),
        (
            "INSERT INTO p SELECT CAST(1 AS BIGINT), 2, 'x'",
            "sink column 'a' at position 1.",
        ),
        ("INSERT INTO p SELECT 1.5, 2, 'x'", "sink column 'a' at position 1."),
        (
            "INSERT INTO p SELECT 1, 2, DATE '2020-01-01'",
            "sink column 'd' at position 3.",
        ),
        ("INSERT INTO p SELECT TRUE, 2, 'x'", "sink column 'a' at position 1."),
        ("INSERT OVERWRITE p SELECT 1, 2, 'x'", "Streaming mode not support overwrite."),
    ],
)
def test_partition_and_type_refusals(sql: str, message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        partitioned().bind(sql)
    assert message in raised.value.message


def test_overwrite_in_batch() -> None:
    environment = partitioned()
    environment.options = {"execution.runtime-mode": "batch"}
    assert sink("INSERT OVERWRITE p SELECT 1, 2, 'x'", environment).overwrite
