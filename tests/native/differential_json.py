"""Flat JSON by the compiled core and by the reader's other tiers: equal wherever the core gives an answer."""

from __future__ import annotations

import ctypes
import mmap

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.native.cores import WITH_CORE
from tests.tiers import examples
from tidemill.connectors.formats.api import RecordError
from tidemill.connectors.formats.json import reader
from tidemill.connectors.formats.json.reader import JsonReader
from tidemill.connectors.formats.json.values import JsonRules
from tidemill.connectors.formats.text_scalars import TextRules
from tidemill.native.json import plain_json
from tidemill.types import logical as t
from tidemill.types.logical import Field, LogicalType

TYPES = (
    t.TinyIntType(), t.SmallIntType(), t.INT, t.BIGINT, t.FloatType(), t.DOUBLE, t.STRING, t.BOOLEAN, t.DATE,
    t.DecimalType(precision=10, scale=2), t.TimestampType(precision=3),
)  # fmt: skip
PLAIN = st.one_of(st.integers(-128, 127).map(str), st.sampled_from(["null", "1.5", '"a"', "true"]))
HOSTILE = st.one_of(
    st.integers(-(2**65), 2**65).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(str),
    st.text('\\"/bfnrtu0a', max_size=6).map(lambda text: f'"{text}"'),
    st.sampled_from(
        ["-0", "-0.0", "007", "+1", "1.", ".5", "1e3", "1E-2", "1.5e400", "NaN", "-", "127", "128", "-129",
         "32768", "2147483648", "999999999999999999", "9223372036854775808", "0.1", "16777217", "1.10",
         '"1"', '" 1"', '"1.5"', '""', '"true"', "tru", "false", '"2024-02-30"', '"2024-05-01"',
         '"2024-05-01 10:00:00.123"', '"2024-05-01T10:00:00.123Z"', '"é日本"',
         '"\\u00e9"', '"\\ud800"', '"a\tb"',
         '"\\n\\"\\\\"', "[]", "{}", '{"c0":1}', "[1,2]", '"' + "x" * 70 + '"', '"', "", "\x00", '"\x7f"']
    ),
)  # fmt: skip
KEYS = st.sampled_from([*["c0", "c1", "c2"] * 8, "C0", "c", "c00", "", "é", "c\\u0030", "c\\n"])
NESTED = st.sampled_from(
    ["[]", "{}", "[1]", '[null,true,-1.5e3,"a"]', '{"a":{"c0":[{}]}}', '["]","}","\\""]', '{"]\\n":"["}',
     "[ { } , [ ] ]", "[1,]", "[,1]", "[1 2]", "[01]", "[1", "[1}", "{1:2}", '{"a"}', '{"a":}',
     '{"a":1,"a":2}', '{"a":1,}', '{"c0":1}', "[NaN]", '["\\u0041"]', '["\\x"]',
     "[" * 32 + "]" * 32, "[" * 33 + "]" * 33]
)  # fmt: skip
pairs = st.one_of(
    *[st.tuples(KEYS, st.one_of(*[PLAIN] * 8, HOSTILE))] * 8,
    st.tuples(st.sampled_from(["x", "x", "c0"]), NESTED),
)
BLANK = st.sampled_from(["", "", " ", "\t"])


def written(fields: list[tuple[str, str]], blank: str) -> str:
    members = f"{blank},{blank}".join(f'"{key}"{blank}:{blank}{value}' for key, value in fields)
    return f"{blank}{{{members}}}{blank}"


objects = st.builds(
    written,
    st.one_of(
        *[st.lists(pairs, max_size=4, unique_by=lambda pair: pair[0])] * 6, st.lists(pairs, max_size=4)
    ),
    BLANK,
)
LINES = st.one_of(*[objects] * 24, st.sampled_from(["", "null", "[]", "{} {}", "1", "{}x", "\ufeff{}", "\r"]))


def answer(by: JsonReader, data: bytes) -> tuple[list[list[str]], list[int]] | str:
    """NaN equals NaN, and -0.0 is not 0.0."""
    try:
        rows = by.read(pa.py_buffer(data))
    except RecordError as e:
        return f"{e.line} {e.field} {e}"
    for column in rows.table.columns:
        column.validate(full=True)
    return [[repr(v) for v in column.to_pylist()] for column in rows.table.columns], rows.lines.tolist()


def compare(by: JsonReader, data: bytes) -> None:
    with_core = answer(by, data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "plain_json", lambda data, kinds: None)
        assert with_core == answer(by, data)


def reading(kinds: list[LogicalType], standard: str, lenient: bool, missing: bool) -> JsonReader:
    rules = JsonRules(text=TextRules(timestamps=standard), lenient=lenient, fail_on_missing=missing)
    return JsonReader(fields=tuple(Field(name=f"c{i}", type=k) for i, k in enumerate(kinds)), rules=rules)


kinds_of = st.one_of(
    *[st.lists(kind, min_size=1, max_size=3) for kind in (st.just(t.STRING), st.sampled_from(TYPES))]
)


@WITH_CORE
@settings(max_examples=examples(500), deadline=None)
@given(
    lines=st.lists(LINES, max_size=3),
    kinds=kinds_of,
    standard=st.sampled_from(["SQL", "ISO-8601"]),
    lenient=st.booleans(),
    missing=st.sampled_from([False, False, False, True]),
    last=st.sampled_from(["", "\n"]),
)
@example(['{"c0":1,"c0":2}'], [t.INT], "SQL", False, False, "\n")
@example(['{"c0":"a","c1":7}', '{"c1":null}'], [t.STRING, t.INT], "SQL", False, False, "")
def test_as_the_other_tiers_read_it(
    lines: list[str], kinds: list[LogicalType], standard: str, lenient: bool, missing: bool, last: str
) -> None:
    compare(reading(kinds, standard, lenient, missing), ("\n".join(lines) + last).encode())


LINE = b'{"c0":12,"c1":"text of some length \\n","x":[1.5,{"y":"z"}]}\n'
WHOLE = LINE + b'{"c1":"\xc3\xa9","c0":-3,"y":true}\n'


@WITH_CORE
@settings(max_examples=examples(400), deadline=None)
@given(place=st.integers(0, 8 * len(WHOLE) - 1), end=st.integers(0, len(WHOLE)))
def test_damaged_bytes(place: int, end: int) -> None:
    damaged = bytearray(WHOLE)
    damaged[place // 8] ^= 1 << place % 8
    for data in (bytes(damaged), bytes(damaged[:end])):
        compare(reading([t.INT, t.STRING], "SQL", False, False), data)


@WITH_CORE
def test_no_byte_after_the_block_is_read() -> None:
    """Each cut of the text ends where the next page may not be read."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(start + page), ctypes.c_size_t(page), 0) == 0
    rows = {len(LINE) - 1: 1, len(LINE): 1, len(WHOLE) - 1: 2, len(WHOLE): 2}
    for size in range(1, len(WHOLE) + 1):
        memory[page - size : page] = WHOLE[:size]
        block = pa.foreign_buffer(start + page - size, size, memory)
        found = plain_json(block, {"c0": pa.int32(), "c1": pa.string()})
        if size not in rows:
            assert found is None
            continue
        assert found is not None
        assert found[0].to_pylist() == [12, -3][: rows[size]]
        assert found[1].to_pylist() == ["text of some length \n", "é"][: rows[size]]


@WITH_CORE
def test_values() -> None:
    data = pa.py_buffer(b' {"b" : "x\\t\\"", "n":{"a":[1,"]"]}, "a":-5}\n{}\n{"a":null,"b":1.50}\n{"b":true}')
    found = plain_json(data, {"a": pa.int8(), "b": pa.string()})
    assert found is not None
    assert [c.to_pylist() for c in found] == [[-5, None, None, None], ['x\t"', None, "1.50", "true"]]
    for column in found:
        column.validate(full=True)


@WITH_CORE
def test_texts_of_any_length_at_any_place() -> None:
    """Marks are looked for in words of eight bytes."""
    texts = ["é" * (n // 2) + "a" * (n % 2) + "\\n" * (n % 3) for n in range(40)]
    data = "\n".join(f'{{"a":"{text}"}}' for text in texts).encode()
    found = plain_json(pa.py_buffer(data), {"a": pa.string()})
    assert found is not None
    assert found[0].to_pylist() == [text.replace("\\n", "\n") for text in texts]


@WITH_CORE
@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b'{"a":1}\r\n', b'{"a":1}\n\n', b'{"a":1}{"a":2}', b'{"a":1,"a":2}', b'{"a":01}',
     b'{"a":"1"}', b'{"a":[1]}', b'{"b":[1,]}', b'{"b":{"a"}}', b'{"b":[}}', b'{"b":"\xff"}',
     b'{"b":"\\u0041"}', b'{"a":2147483648}', b'{"a":1.5}', b'{"\\n":1}', b"null",
     b'{"a":true}', b'{"a":1', b'{"a":1,}', b'{"b":"\t"}', b'{"b":' + b"[" * 33 + b"]" * 33 + b"}"],
)  # fmt: skip
def test_what_is_not_plain(data: bytes) -> None:
    assert plain_json(pa.py_buffer(data), {"a": pa.int32()}) is None
