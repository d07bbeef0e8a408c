"""Reads Thrift's binary protocol from untrusted clients, at a cost that is linear in the received bytes.

A declared size must not exceed the remaining bytes of the message, so a client cannot cause memory or time by
a false size. The library writes structs.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from thriftpy2.protocol import binary
from thriftpy2.thrift import TApplicationException, TMessageType, TType

from tidemill.gateway.endpoints.hiveserver2.structs import call_structs

_VERSION, _VERSION_MASK = 0x80010000, 0xFFFF0000
_DEPTH = 24
_LONGEST_NAME = 256
_SUCCESS_FIELD = struct.pack("!bh", TType.STRUCT, 0)
_STOP = b"\0"


class WireError(Exception):
    """The bytes are invalid in the protocol."""


class Source(Protocol):
    """The bytes of one message."""

    def read(self, size: int) -> bytes:
        """Reads exactly ``size`` bytes. WireError if the message has, or may have, fewer."""
        ...

    @property
    def left(self) -> int:
        """The number of bytes that the message may still have."""
        ...


@dataclass(slots=True)
class Held:
    """A message in memory."""

    data: bytes
    _at: int = 0

    def read(self, size: int) -> bytes:
        if not 0 <= size <= self.left:
            raise WireError(f"{size} bytes are said to follow, there are {self.left}")
        self._at += size
        return self.data[self._at - size : self._at]

    @property
    def left(self) -> int:
        return len(self.data) - self._at


@dataclass(frozen=True, slots=True)
class Call:
    """``request`` is None if the protocol lacks the method."""

    method: str
    sequence: int
    request: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """``more``: further encoded fields of the response."""

    response: Any
    more: bytes = b""


def read_call(source: Source) -> Call:
    """Reads a call. WireError if the bytes are no call."""
    (header,) = struct.unpack("!I", source.read(4))
    if header & _VERSION_MASK != _VERSION:
        raise WireError("the message does not begin as one of Thrift's binary protocol")
    if header & 0xFF not in (TMessageType.CALL, TMessageType.ONEWAY):
        raise WireError(f"a message of type {header & 0xFF} is no call")
    size = _int(source, "!i")
    if size > _LONGEST_NAME:
        raise WireError(f"no method has a name of {size} bytes")
    method = source.read(size).decode("utf-8", "replace")
    sequence = _int(source, "!i")
    known = call_structs(method)
    if known is None:
        _skip(source, TType.STRUCT, _DEPTH)
        return Call(method, sequence, None)
    return Call(method, sequence, _arguments(source, known[0]))


def reply(call: Call, answer: Answer) -> bytes:
    body = _encoded(answer.response)[: -len(_STOP)] + answer.more + _STOP
    return _head(call.method, TMessageType.REPLY, call.sequence) + _SUCCESS_FIELD + body + _STOP


def refusal(call: Call, kind: int, message: str) -> bytes:
    """Thrift's own error, for what is no call of this protocol."""
    error = TApplicationException(kind, message)
    return _head(call.method, TMessageType.EXCEPTION, call.sequence) + _encoded(error)


def _head(method: str, kind: int, sequence: int) -> bytes:
    out = io.BytesIO()
    binary.write_message_begin(out, method, kind, sequence)
    return out.getvalue()


def _encoded(value: Any) -> bytes:
    out = io.BytesIO()
    binary.write_val(out, TType.STRUCT, value)
    return out.getvalue()


def _arguments(source: Source, request: type[Any]) -> Any:
    """A method has one argument, field 1; without it the request is empty."""
    found = request()
    while (kind := source.read(1)[0]) != TType.STOP:
        field = _int(source, "!h")
        if field == 1 and kind == TType.STRUCT:
            found = _struct(source, request, _DEPTH)
        else:
            _skip(source, kind, _DEPTH)
    return found


def _struct(source: Source, made: type[Any], depth: int) -> Any:
    """Fields that are not known, or of another type than known, are skipped."""
    value = made()
    _check_depth(depth)
    while (kind := source.read(1)[0]) != TType.STOP:
        spec = made.thrift_spec.get(_int(source, "!h"))
        if spec is None or _on_wire(spec[0]) != kind:
            _skip(source, kind, depth - 1)
        else:
            setattr(value, spec[1], _value(source, spec[0], spec[2], depth - 1))
    return value


def _value(source: Source, kind: int, of: Any, depth: int) -> Any:
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return simple(source)
    if kind == TType.STRUCT:
        return _struct(source, of, depth)
    if kind == TType.MAP:
        return _map(source, of, depth)
    return _list(source, of, depth)


def _list(source: Source, of: Any, depth: int) -> list[Any]:
    _check_depth(depth)
    kind, size = source.read(1)[0], _size(source)
    element, inner = _spec(of)
    if kind != _on_wire(element):
        raise WireError(f"a list has elements of type {kind}")
    return [_value(source, element, inner, depth - 1) for _ in range(size)]


def _map(source: Source, of: Any, depth: int) -> dict[Any, Any]:
    _check_depth(depth)
    kinds, size = tuple(source.read(2)), _size(source)
    (key, key_of), (value, value_of) = _spec(of[0]), _spec(of[1])
    if size and kinds != (_on_wire(key), _on_wire(value)):
        raise WireError(f"a map has entries of types {kinds}")
    return {
        _value(source, key, key_of, depth - 1): _value(source, value, value_of, depth - 1)
        for _ in range(size)
    }


def _skip(source: Source, kind: int, depth: int) -> None:
    _check_depth(depth)
    if kind in _FIXED:
        source.read(_FIXED[kind])
    elif kind == TType.STRING:
        source.read(_int(source, "!i"))
    elif kind == TType.STRUCT:
        while (field := source.read(1)[0]) != TType.STOP:
            source.read(2)
            _skip(source, field, depth - 1)
    elif kind == TType.MAP:
        kinds = source.read(2)
        for _ in range(_size(source)):
            _skip(source, kinds[0], depth - 1)
            _skip(source, kinds[1], depth - 1)
    elif kind in (TType.LIST, TType.SET):
        element = source.read(1)[0]
        for _ in range(_size(source)):
            _skip(source, element, depth - 1)
    else:
        raise WireError(f"there is no type {kind}")


def _size(source: Source) -> int:
    """Of a collection: every element takes a byte at least."""
    size = _int(source, "!i")
    if not 0 <= size <= source.left:
        raise WireError(f"a collection is said to have {size} elements")
    return size


def _int(source: Source, form: str) -> int:
    value: int = struct.unpack(form, source.read(struct.calcsize(form)))[0]
    return value


def _text(source: Source) -> str:
    try:
        return _bytes(source).decode("utf-8")
    except UnicodeDecodeError as e:
        raise WireError("a text is not UTF-8") from e


def _bytes(source: Source) -> bytes:
    return source.read(_int(source, "!i"))


def _double(source: Source) -> float:
    value: float = struct.unpack("!d", source.read(8))[0]
    return value


def _check_depth(depth: int) -> None:
    if depth <= 0:
        raise WireError("structs within structs are too deep")


def _spec(of: Any) -> tuple[int, Any]:
    return (of[0], of[1]) if isinstance(of, tuple) else (of, None)


def _on_wire(kind: int) -> int:
    return TType.STRING if kind == TType.BINARY else kind


_FIXED = {TType.BOOL: 1, TType.BYTE: 1, TType.I16: 2, TType.I32: 4, TType.I64: 8, TType.DOUBLE: 8}
_SIMPLE: dict[int, Callable[[Source], Any]] = {
    TType.BOOL: lambda source: source.read(1) != b"\0",
    TType.BYTE: lambda source: _int(source, "!b"),
    TType.I16: lambda source: _int(source, "!h"),
    TType.I32: lambda source: _int(source, "!i"),
    TType.I64: lambda source: _int(source, "!q"),
    TType.DOUBLE: _double,
    TType.STRING: _text,
    TType.BINARY: _bytes,
}
