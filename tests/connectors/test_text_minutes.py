"""Times in text whose neighbours lie in one minute are read as each of them is by itself."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidemill.connectors.formats import text_scalars as scalars
from tidemill.connectors.formats.text_minutes import by_minutes
from tidemill.connectors.formats.text_types import convert_text
from tidemill.types import logical as t

SQL = scalars.CSV_RULES
ISO = scalars.TextRules(timestamps="ISO-8601")
NEIGHBOURS = 40


def minutes(tail: str) -> list[str]:
    """Times of two minutes, the first before 1970, all of one length."""
    texts = [f"{minute}:{n:02d}" for minute in ("1969-12-31 23:59", "2024-02-29 12:34") for n in range(60)]
    return [text + tail.replace("7", str(n % 10)) for n, text in enumerate(texts)]


@pytest.mark.parametrize("tail", ["", ".007", ".790"])
def test_times_of_few_minutes(tail: str) -> None:
    texts = minutes(tail)
    # A slice of a longer array, as filters leave them.
    found = by_minutes(pa.array(["x", *texts])[1:], lambda text: scalars.timestamp(text, 3, SQL))
    assert found is not None
    assert found.to_pylist() == [scalars.timestamp(text, 3, SQL) for text in texts]


@pytest.mark.parametrize("precision", [0, 2, 3, 6])
def test_digits_beyond_the_precision_are_dropped(precision: int) -> None:
    texts = minutes(".789")
    found = convert_text(pa.array(texts), t.TimestampType(precision=precision), SQL)
    assert found.bad is None
    assert found.values.to_pylist() == [scalars.timestamp(text, precision, SQL) for text in texts]


@pytest.mark.parametrize(
    "odd",
    [
        "2024-02-29 12:34:60.000",
        "2024-02-29 12:34:5x.000",
        "2024-02-29 12:34:0/.000",
        "2024-02-29 12:34:0:.000",
        "2024-02-29 12:34:00,000",
        "2024-02-29 12:34.00.000",
        "2024-02-29 12:34:00.00 ",
        " 2024-02-29 12:34:00.00",
        "2024-02-29 12:34:00.00é",
        "2024-02-29 12:34:00.é0",
        "2024-02-29 24:00:00.000",
        "2024-02-30 12:34:00.000",
        "2024-02-32 12:34:00.000",
        "2024-02-29T12:34:00.000",
        "2024-02-29 12:34:00.0001",
        "2024-02-29 12:34:00",
        "",
        None,
    ],
)
@pytest.mark.parametrize("rules", [SQL, ISO])
def test_an_odd_one_among_them_is_what_it_is_alone(odd: str | None, rules: scalars.TextRules) -> None:
    separator = "T" if rules is ISO else " "
    fine = f"2024-02-29{separator}12:34:56.789"
    texts: list[str | None] = [fine] * NEIGHBOURS + [odd] + [fine] * NEIGHBOURS
    kind = t.TimestampType(precision=3)
    among = convert_text(pa.array(texts), kind, rules)
    alone = convert_text(pa.array([odd], pa.string()), kind, rules)
    values = among.values.to_pylist()
    assert values[NEIGHBOURS] == alone.values.to_pylist()[0]
    assert (among.bad is not None and bool(among.bad[NEIGHBOURS])) == (alone.bad is not None)
    assert {v for n, v in enumerate(values) if n != NEIGHBOURS} == {scalars.timestamp(fine, 3, rules)}


def test_instants() -> None:
    texts = [f"2024-02-29T12:34:{n:02d}.125Z" for n in range(60)]
    found = convert_text(pa.array(texts), t.LocalZonedTimestampType(precision=3), ISO).values
    assert found.type == pa.timestamp("us", tz="UTC")
    assert [f"{v:%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z" for v in found.to_pylist()] == texts


def test_times_far_apart_are_read_otherwise() -> None:
    texts = pa.array([f"2024-02-29 12:{n % 60:02d}:00.000" for n in range(200)])
    assert by_minutes(texts, lambda text: scalars.timestamp(text, 3, SQL)) is None
