from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidemill.errors import NotSupportedError, SqlSyntaxError, ValidationError
from tidemill.sql.parser import parse_statement, parse_type
from tidemill.sql.statements import CreateTable, PhysicalColumn

GOLDENS = Path(__file__).parents[2].parent / "shared" / "goldens"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("integer", "INT"),
        ("DECIMAL", "DECIMAL(10, 0)"),
        ("NUMERIC(5)", "DECIMAL(5, 0)"),
        ("DEC(40, 38)", "DECIMAL(38, 38)"),
        ("DOUBLE PRECISION", "DOUBLE"),
        ("CHAR", "CHAR(1)"),
        ("CHARACTER VARYING(3)", "VARCHAR(3)"),
        ("VARCHAR", "STRING"),
        ("CHARACTER VARYING", "STRING"),
        ("VARCHAR NOT NULL ARRAY", "ARRAY<STRING NOT NULL>"),
        ("ROW<a VARCHAR, b MAP<CHAR, VARBINARY>>", "ROW<`a` STRING, `b` MAP<CHAR(1), BYTES>>"),
        ("VARCHAR(2147483647)", "STRING"),
        ("BINARY VARYING", "BYTES"),
        ("VARBINARY", "BYTES"),
        ("BINARY", "BINARY(1)"),
        ("BYTES NOT NULL", "BYTES NOT NULL"),
        ("TIME", "TIME(0)"),
        ("TIME(9)", "TIME(3)"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("TIMESTAMP(12)", "TIMESTAMP(9)"),
        ("TIMESTAMP(3) WITHOUT TIME ZONE", "TIMESTAMP(3)"),
        ("TIMESTAMP(0) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(0)"),
        ("TIMESTAMP_LTZ", "TIMESTAMP_LTZ(6)"),
        ("INT ARRAY", "ARRAY<INT>"),
        ("INT NOT NULL ARRAY NOT NULL", "ARRAY<INT NOT NULL> NOT NULL"),
        ("STRING MULTISET", "MULTISET<STRING>"),
        ("MAP<STRING, ARRAY<INT>>", "MAP<STRING, ARRAY<INT>>"),
        ("ROW(a INT 'note', `b c` STRING NOT NULL)", "ROW<`a` INT, `b c` STRING NOT NULL>"),
        ("ROW<a ROW<b MAP<INT, INT>>>", "ROW<`a` ROW<`b` MAP<INT, INT>>>"),
        ("ROW<>", "ROW<>"),
        ("INTERVAL DAY(3) TO SECOND(6)", "INTERVAL SECOND(3)"),
        ("INTERVAL YEAR TO MONTH", "INTERVAL MONTH"),
    ],
)
def test_type_text(text: str, shown: str) -> None:
    assert str(parse_type(text)) == shown


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("DECIMAL(5, 7)", ValidationError),
        ("DECIMAL(0)", ValidationError),
        ("FOO", ValidationError),
        ("VARIANT", NotSupportedError),
        ("RAW('a', 'b')", NotSupportedError),
        ("MAP<INT>", SqlSyntaxError),
        ("INT INT", SqlSyntaxError),
        ("TIMESTAMP WITH TIME ZONE", SqlSyntaxError),
        ("INTERVAL DAY TO MONTH", SqlSyntaxError),
    ],
)
def test_what_is_no_type(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_type(text)


def test_a_misspelt_type_has_a_hint() -> None:
    with pytest.raises(ValidationError, match="Unknown identifier 'BIGITN'") as caught:
        parse_type("BIGITN")
    assert caught.value.hint == "Did you mean BIGINT instead of BIGITN?"


def recorded_types() -> list[str]:
    found: set[str] = set()
    for answer in GOLDENS.glob("*/*.json"):
        for statement in json.loads(answer.read_text())["statements"]:
            found.update(column["type"] for column in statement.get("columns", ()))
    return sorted(kind for kind in found if "*" not in kind)


@pytest.mark.skipif(not GOLDENS.exists(), reason="the recorded answers are not beside this checkout")
def test_every_type_that_flink_prints_is_read_back() -> None:
    kinds = recorded_types()
    assert len(kinds) > 100
    assert [str(parse_type(kind)) for kind in kinds] == kinds


def test_column_types_keep_text_and_type() -> None:
    table = parse_statement("CREATE TABLE t (a  DECIMAL( 5 ,2 )  NOT NULL, b ROW<x INT ARRAY>)")
    assert isinstance(table, CreateTable)
    columns = [c for c in table.columns if isinstance(c, PhysicalColumn)]
    assert [(c.type_text, str(c.type)) for c in columns] == [
        ("DECIMAL( 5 ,2 )  NOT NULL", "DECIMAL(5, 2) NOT NULL"),
        ("ROW<x INT ARRAY>", "ROW<`x` ARRAY<INT>>"),
    ]
