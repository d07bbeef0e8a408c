"""Good inputs of every text format, and ways to damage them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.types import logical as t
from tidemill.types.logical import Field

_SCALARS: dict[str, t.LogicalType] = {
    "i": t.INT,
    "s": t.STRING,
    "d": t.DecimalType(precision=10, scale=2),
    "f": t.DOUBLE,
    "dt": t.DATE,
    "ti": t.TimeType(precision=3),
    "ts": t.TimestampType(precision=3),
    "tz": t.LocalZonedTimestampType(precision=6),
    "b": t.BOOLEAN,
    "bin": t.VarBinaryType(length=10),
    "a": t.ArrayType(element=t.INT),
    "r": t.RowType(fields=(Field("x", t.INT), Field("y", t.STRING))),
}
_COLUMNS = {**_SCALARS, "m": t.MapType(key=t.STRING, value=t.INT)}
_OBJECT = (
    '{"i":1,"s":"x\\u00e9","d":"1.25","f":1e3,"dt":"2020-01-02","ti":"12:13:14","b":true,"bin":"AQI=",'
    '"ts":"2020-01-02 03:04:05.123","tz":"2020-01-02 03:04:05Z","a":[1,null,3],"r":{"x":1,"y":"z"},'
    '"m":{"k":1,"l":null}}'
)
_RECORD = (
    "1,xé,1.25,1e3,2020-01-02,12:13:14,2020-01-02 03:04:05.123,2020-01-02 03:04:05Z,true,AQI=,1;2;3,1;z\n"
)
_MILLIS = t.LocalZonedTimestampType(precision=3)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """``text``: a good file of ``columns``; metadata as ``decode`` takes it."""

    columns: Mapping[str, t.LogicalType]
    text: str
    metadata: Mapping[str, tuple[str, t.LogicalType]]


def _messages(*lines: str, metadata: Mapping[str, tuple[str, t.LogicalType]]) -> Sample:
    text = "".join(line.replace("$", _OBJECT) + "\n" for line in lines)
    return Sample(columns=_COLUMNS, text=text, metadata=metadata)


SAMPLES: dict[str, Sample] = {
    "csv": Sample(
        columns=_SCALARS,
        text=_RECORD + _RECORD.replace("xé", '"q""u,\no"') + _RECORD,
        metadata={},
    ),
    "json": _messages("$", "$", "$", metadata={}),
    "raw": Sample(columns={"i": t.INT}, text="abcd\nefgh\n", metadata={}),
    "debezium-json": _messages(
        '{"op":"c","after":$}',
        '{"op":"u","before":$,"after":$,"source":{"db":"x","ts_ms":1},"ts_ms":5}',
        '{"op":"d","before":$}',
        metadata={"m1": ("source.timestamp", _MILLIS), "m2": ("ingestion-timestamp", _MILLIS)},
    ),
    "canal-json": _messages(
        '{"type":"INSERT","data":[$,$],"ts":1,"es":2,"database":"d","sqlType":{"i":4},"pkNames":["i"]}',
        '{"type":"UPDATE","data":[$],"old":[{"i":null,"s":"q"}],"ts":1}',
        '{"type":"DELETE","data":[$]}',
        metadata={
            "m1": ("sql-type", t.MapType(key=t.STRING, value=t.INT)),
            "m2": ("event-timestamp", _MILLIS),
        },
    ),
    "maxwell-json": _messages(
        '{"type":"insert","data":$,"ts":1,"database":"d"}',
        '{"type":"update","data":$,"old":{"i":null,"s":"q"}}',
        '{"type":"delete","data":$}',
        metadata={"m1": ("ingestion-timestamp", _MILLIS)},
    ),
    "ogg-json": _messages(
        '{"op_type":"I","after":$,"op_ts":"2020-01-01 00:00:00.000000"}',
        '{"op_type":"U","before":$,"after":$,"current_ts":"2020-01-01T00:00:00.000"}',
        metadata={"m1": ("event-timestamp", t.LocalZonedTimestampType(precision=6))},
    ),
}

_PIECES = (
    *(bytes([c]) for c in b'"\\{}[],:;\x00\n\r -\xff'),
    *(b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\ud800", b'"\\ud800"', "😀".encode(), b"''", b"/*"),
    *(b"null", b"true", b"NaN", b"Infinity", b"-0", b"0x1p3", b"1.5", b"1e999", b"1e99999999", b"1e-99999"),
    *(b"9" * 25, b"9" * 5000, b"-9223372036854775809", b"0000-00-00", b"9999-12-31", b"99:99:99"),
    *(b"{}", b"[]", b"[[]]", b'"old":5,', b'"old":[1],', b'"data":[null],', b'"op":7,', b'"payload":{},'),
    *(b"[" * 3000, b'{"a":' * 2000, b"[" * 600 + b"]" * 600, b'{"a":' * 700 + b"1" + b"}" * 700),
)


def damaged(draw: random.Random, data: bytes) -> bytes:
    """``data`` with one to six pieces put in, written over, cut out, doubled or cut off."""
    made = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 2, 3, 6])):
        at, how, piece = draw.randrange(len(made) + 1), draw.randrange(7), draw.choice(_PIECES)
        if how < 2:
            made[at:at] = piece
        elif how == 2:
            made[at : at + len(piece)] = piece
        elif how == 3:
            del made[at : at + draw.randrange(1, 8)]
        elif how == 4:
            made[at : at + 1] = bytes([draw.randrange(256)])
        elif how == 5:
            made[at:at] = made[draw.randrange(at + 1) : at]
        else:
            del made[at:]
    return bytes(made)
