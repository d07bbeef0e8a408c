"""Plain CSV by the compiled core and by Arrow's reader: equal wherever the core gives an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.native.cores import WITH_CORE
from tests.tiers import examples
from tidemill.connectors.formats.api import Block, RecordError
from tidemill.connectors.formats.csv import decode
from tidemill.connectors.formats.csv.decode import CsvDecoder
from tidemill.connectors.formats.csv.dialect import Dialect
from tidemill.native.csv import plain_csv
from tidemill.types import logical as t
from tidemill.types.logical import Field, LogicalType

TYPES = (
    t.TinyIntType(),
    t.SmallIntType(),
    t.INT,
    t.BIGINT,
    t.FloatType(),
    t.DOUBLE,
    t.STRING,
    t.BOOLEAN,
    t.DATE,
)
HOSTILE = st.one_of(
    st.integers(-(2**65), 2**65).map(str),
    st.floats(width=32).map(str),
    st.floats().map(str),
    st.sampled_from(
        ["", "0", "-0", "-0.0", "007", "+1", " 1", "1 ", "1.", ".5", "1e3", "0x1", "NaN", "Infinity", "N",
         "-", "127", "128", "-128", "-129", "32768", "2147483648", "999999999999999999",
         "1000000000000000000", "9223372036854775807", "9223372036854775808", "1.7976931348623157e308", "0.1",
         "true", "1970-01-01", "é", "日本", "\u00a0", "\x00", "a\rb", '"', '"a"', "x" * 70, "\ufeffa"]
    ),
    st.text("01-.;N", max_size=6),
)  # fmt: skip
PLAIN = st.one_of(st.integers(-128, 127).map(str), st.just("N"))
rows = st.lists(st.lists(st.one_of(PLAIN, PLAIN, PLAIN, HOSTILE), min_size=1, max_size=4), max_size=12)


PLAINLY = Dialect(
    delimiter=";",
    quote='"',
    escape="",
    null=None,
    comments=False,
    lenient=False,
    element_delimiter=",",
    scientific=False,
)


def decoder(kinds: list[LogicalType], wanted: list[bool], **dialect: Any) -> CsvDecoder:
    columns = tuple(Field(name=f"c{i}", type=kind) for i, kind in enumerate(kinds))
    return CsvDecoder(
        columns=columns,
        wanted=tuple(c for c, asked in zip(columns, wanted, strict=True) if asked),
        dialect=replace(PLAINLY, **dialect),
    )


def answer(by: CsvDecoder, data: bytes) -> pa.Table | str:
    try:
        return by.decode(Block(data=pa.py_buffer(data), start=1))
    except RecordError as e:
        return str(e)


@WITH_CORE
@settings(max_examples=examples(1_000), deadline=None)
@given(
    records=rows,
    kinds=st.lists(st.tuples(st.sampled_from(TYPES), st.booleans()), min_size=1, max_size=4),
    null=st.sampled_from([None, "N", ""]),
    quote=st.sampled_from(['"', ""]),
    ends=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
)
@example([["1"] * 2] * 70, [(t.INT, True), (t.STRING, True)], None, '"', "\n", True)
@example([["1", "é"]] * 20, [(t.TinyIntType(), True), (t.STRING, True)], None, "", "\n", False)
def test_as_arrow_reads_it(
    records: list[list[str]],
    kinds: list[tuple[LogicalType, bool]],
    null: str | None,
    quote: str,
    ends: str,
    last: bool,
) -> None:
    text = ends.join(";".join((record * 4)[: len(kinds)]) for record in records) + ends * last
    by = decoder([k for k, _ in kinds], [asked for _, asked in kinds], null=null, quote=quote)
    with_core = answer(by, text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "plain_csv", lambda *given, **options: None)
        without = answer(by, text.encode())
    if isinstance(with_core, pa.Table) and isinstance(without, pa.Table):
        assert texts(with_core) == texts(without)
        assert with_core.schema == without.schema
    else:
        assert with_core == without


def texts(table: pa.Table) -> list[list[str]]:
    """NaN equals NaN, and -0.0 is not 0.0."""
    return [[repr(value) for value in column.to_pylist()] for column in table.columns]


KINDS = [pa.int32(), pa.string(), None, pa.float64()]


@WITH_CORE
@pytest.mark.parametrize("size", [1, 15, 16, 17, 63, 64, 65, 200])
def test_fields_of_any_length_at_any_place(size: int) -> None:
    """Marks are looked for in blocks of 64 bytes."""
    texts = ["é" * (n // 2) + "a" * (n % 2) for n in range(size)]
    data = "".join(f"{n};{text};skipped;{n}.5\n" for n, text in enumerate(texts)).encode()
    found = plain_csv(pa.py_buffer(data), KINDS, delimiter=";", quote='"', null=None)
    assert found is not None
    assert [c.to_pylist() for c in found] == [[*range(size)], texts, [n + 0.5 for n in range(size)]]
    for column in found:
        column.validate(full=True)


@WITH_CORE
@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n", b"1;a;b\n", b"1;a;b;1;5\n", b"1;a;b;1\n\n", b"1;a;b;1\r\n", b'1;"a";b;1\n', b"1;a;b;1\n2",
        b"x;a;b;1\n", b"+1;a;b;1\n", b"2147483648;a;b;1\n", b"1;a;b;1e5\n", b"1;a;b;.5\n", b"1;a;b;NaN\n",
        b"1;a\xff;b;1\n", b"1;a;b\xff;1\n", b"1;a;b;\n",
    ],
)  # fmt: skip
def test_what_is_not_plain(data: bytes) -> None:
    assert plain_csv(pa.py_buffer(data), KINDS, delimiter=";", quote='"', null=None) is None


@WITH_CORE
def test_nulls() -> None:
    data = pa.py_buffer(b"N;N;N;N\n1;;x;2\n")
    found = plain_csv(data, KINDS, delimiter=";", quote="", null="N")
    assert found is not None
    assert [c.to_pylist() for c in found] == [[None, 1], [None, ""], [None, 2.0]]
