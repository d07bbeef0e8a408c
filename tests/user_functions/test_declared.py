"""Declarations: types from texts, Arrow types and annotations; what cannot be declared says why."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.user_functions import samples
from tidemill import AggregateFunction, udaf, udf, udtf
from tidemill.user_functions.annotations import annotation_text, type_text
from tidemill.user_functions.declared import plain_function
from tidemill.user_functions.kinds import DeclarationError


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (int, "BIGINT"),
        (bool, "BOOLEAN"),
        (str | None, "STRING"),
        (list[float], "ARRAY<DOUBLE>"),
        (dict[str, int | None], "MAP<STRING, BIGINT>"),
        (Decimal, "DECIMAL(38, 18)"),
        (datetime.datetime, "TIMESTAMP(6)"),
        (int | str, None),
        (object, None),
        (list, None),
    ],
)
def test_annotations(given: Any, text: str | None) -> None:
    assert annotation_text(given) == text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("BIGINT NOT NULL", "BIGINT NOT NULL"),
        (pa.int32(), "INT"),
        (pa.decimal128(7, 2), "DECIMAL(7, 2)"),
        (pa.timestamp("ms"), "TIMESTAMP(3)"),
        (pa.timestamp("us", "UTC"), "TIMESTAMP_LTZ(6)"),
        (pa.list_(pa.string()), "ARRAY<STRING>"),
        (pa.struct([("a b", pa.int8())]), "ROW<`a b` TINYINT>"),
        (pa.map_(pa.string(), pa.date32()), "MAP<STRING, DATE>"),
    ],
)
def test_types(given: Any, text: str) -> None:
    assert type_text(given) == text


def test_a_plain_function_is_declared_by_its_annotations() -> None:
    found = plain_function(samples.plus)
    assert found is not None
    assert (found.input_types, found.result_type) == (("BIGINT", "BIGINT"), "BIGINT")
    assert plain_function(lambda x: x) is None


def test_arguments_with_defaults_come_as_they_are() -> None:
    def with_default(a: int, b: int = 3) -> int:
        return a + b

    assert udf(with_default).input_types is None


def test_a_declared_function_can_be_called() -> None:
    assert samples.count_char("banana", "a") == 3
    assert list(samples.split_words("a bc")) == [("a", 1), ("bc", 2)]


def test_an_object_with_eval_is_a_function() -> None:
    class Shift:
        def __init__(self, by: int) -> None:
            self.by = by

        def eval(self, x: int) -> int:
            return x + self.by

    declared = udf(Shift(3), result_type="BIGINT")
    assert declared(4) == 7
    assert declared.input_types == ("BIGINT",)


class Plain:
    pass


class NoMerge(AggregateFunction):
    pass


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: udf(lambda x: x), "result_type is missing"),
        (lambda: udf(3, result_type="INT"), "not callable"),
        (lambda: udf(lambda x: x, result_type="INT", func_type="pandas"), "'pandas' is not one of general"),
        (lambda: udtf(lambda x: x), "result_types is missing"),
        (lambda: udaf(Plain, result_type="INT", accumulator_type="INT"), "must derive from AggregateF"),
        (lambda: udaf(NoMerge, result_type="INT"), "accumulator_type is missing"),
        (
            lambda: udaf(NoMerge, result_type="INT", accumulator_type="INT", func_type="arrow"),
            "needs the method merge",
        ),
    ],
)
def test_what_cannot_be_declared_says_why(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        declare()
