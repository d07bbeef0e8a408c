"""DECIMAL(38, 18) with all its digits: read, shown, negated, cut, counted and averaged in both modes."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Session
from tidemill.client.json_output import json_rows
from tidemill.sql.parser import parse_statement

NINES = "99999999999999999999.999999999999999999"
ODD = "12345678901234567890.123456789012345678"
VALUES = (NINES, f"-{NINES}", ODD, f"-{ODD}", "-0.000000000000000001")
EXPRESSIONS: dict[str, Callable[[str], str]] = {
    "m": lambda text: text,
    "CAST(m AS STRING)": lambda text: text,
    "-m": lambda text: text[1:] if text.startswith("-") else f"-{text}",
    "ABS(m)": lambda text: text.lstrip("-"),
    "TRUNCATE(m, 3)": lambda text: format(Decimal(text[:-15]), "f"),
    "SUM(m)": lambda text: text,
    "AVG(m)": lambda text: text,
    "MIN(m)": lambda text: text,
    "SUM(DISTINCT m)": lambda text: text,
}


@pytest.mark.one_case
@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize("value", VALUES)
def test_every_digit(tmp_path: Path, spark: SparkSession, mode: str, value: str) -> None:
    (tmp_path / "wide").write_text(f"{value}\n")
    made = Session({"execution.runtime-mode": mode})
    made.execute(
        "CREATE TABLE wide (m DECIMAL(38, 18))"
        f" WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/wide', 'format' = 'csv')"
    )
    shown = {}
    for expression in EXPRESSIONS:
        result = made.environment.execute(parse_statement(f"SELECT {expression} FROM wide"))
        (shown[expression],) = [row[-1] for row in json_rows(result)]
    assert {e: Decimal(text) for e, text in shown.items()} == {
        e: Decimal(given(value)) for e, given in EXPRESSIONS.items()
    }
    assert shown["m"] == shown["CAST(m AS STRING)"] == value
