"""Typed configuration entries with Flink's keys; one file per area declares them.

``Configuration`` maps keys to text as SET gave it; ``get`` parses by the entry's type and names key
and value when the text does not fit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tidemill.errors import ValidationError

T = TypeVar("T")

_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")
_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?[df]?\s*", re.IGNORECASE)
INT = (1 << 31) - 1
"""The largest number of 32 bits."""
LONG = (1 << 63) - 1
"""The largest number, and number of bytes, that an option can be."""
_DURATION = re.compile(r"\s*([0-9]+)\s*([a-zµ]*)\s*", re.IGNORECASE)
_DURATION_MS: dict[str, float] = {
    unit: factor
    for factor, units in (
        (86_400_000, "d day days"),
        (3_600_000, "h hour hours"),
        (60_000, "m min minute minutes"),
        (1_000, "s sec secs second seconds"),
        (1, "ms milli millis millisecond milliseconds "),
        (0.001, "us µs micro micros microsecond microseconds"),
        (0.000001, "ns nano nanos nanosecond nanoseconds"),
    )
    for unit in units.split(" ")
}
_SIZE_BYTES = {
    unit: factor
    for factor, units in (
        (1, " b bytes"),
        (1 << 10, "k kb kibibytes"),
        (1 << 20, "m mb mebibytes"),
        (1 << 30, "g gb gibibytes"),
        (1 << 40, "t tb tebibytes"),
    )
    for unit in units.split(" ")
}


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of time; whole milliseconds."""

    milliseconds: int

    @property
    def seconds(self) -> float:
        return self.milliseconds / 1000


@dataclass(frozen=True, slots=True)
class MemorySize:
    bytes: int


def parse_duration(text: str) -> Duration:
    """``1 s``, ``500ms``, ``2 min``; a bare number is milliseconds. ValueError otherwise."""
    match = _DURATION.fullmatch(text)
    factor = _DURATION_MS.get(match.group(2).lower()) if match else None
    if match is None or factor is None:
        raise ValueError(f"'{text}' is not a duration such as '500 ms', '5 s', '1 min' or '2 h'")
    return Duration(int(int(match.group(1)) * factor))


def parse_memory(text: str) -> MemorySize:
    """``64 mb``, ``1gb``; a bare number is bytes. ValueError otherwise."""
    match = _DURATION.fullmatch(text)
    factor = _SIZE_BYTES.get(match.group(2).lower()) if match else None
    if match is None or factor is None:
        raise ValueError(f"'{text}' is not a memory size such as '64 mb' or '1 gb'")
    size = int(match.group(1)) * factor
    if size > LONG:
        raise ValueError(f"'{text}' is more than {LONG} bytes")
    return MemorySize(size)


def parse_boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError(f"'{text}' is not a boolean: expected true or false (case insensitive)")
    return lowered == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option(Generic[T]):
    """One entry. ``parse`` is chosen by ``kind``: bool, int, float, str, Duration, MemorySize."""

    key: str
    kind: type[T]
    default: T
    doc: str
    choices: tuple[str, ...] = ()
    least: int | None = None
    """The smallest allowed number, or number of bytes."""
    above: int | None = None
    """An exclusive lower bound."""
    most: int | None = None
    """The largest allowed number; for int options the default is ``INT``."""
    own: bool = False
    """Whether the key is Tidemill's own and not Flink's."""
    formerly: tuple[str, ...] = ()
    """Former keys in Flink; ``key`` takes precedence."""

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.key, *self.formerly)

    def parse(self, text: str) -> T:
        try:
            value: T = _PARSERS[self.kind](text)
        except ValueError as e:
            escaped = text.replace("\0", "\\0")
            raise ValidationError(f"Could not parse value '{escaped}' for key '{self.key}': {e}") from None
        if self.choices and str(value).upper() not in {c.upper() for c in self.choices}:
            raise ValidationError(
                f"Could not parse value '{text}' for key '{self.key}'.", expected=self.choices
            )
        self._check_size(value, text)
        return value

    def _check_size(self, value: T, text: str) -> None:
        size = value.bytes if isinstance(value, MemorySize) else value
        if not isinstance(size, int | float):
            return
        most = INT if self.most is None and self.kind is int else self.most
        if self.least is not None and size < self.least:
            requirement = f"at least {self.least}"
        elif self.above is not None and size <= self.above:
            requirement = f"larger than {self.above}"
        elif most is not None and size > most:
            requirement = f"at most {most}"
        else:
            return
        raise ValidationError(
            f"Could not parse value '{text}' for key '{self.key}': it must be {requirement}."
        )


def parse_integer(text: str) -> int:
    """A whole number of 64 bits. ValueError otherwise."""
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"'{text}' is not a whole number")
    number = int(text)
    if not -LONG - 1 <= number <= LONG:
        raise ValueError(f"'{text}' is not from {-LONG - 1} to {LONG}")
    return number


def parse_number(text: str) -> float:
    """A finite number in Java's syntax of doubles. ValueError otherwise."""
    number = float(text.strip().rstrip("dfDF")) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(number):
        raise ValueError(f"'{text}' is not a number such as 1.5")
    return number


def parse_text(text: str) -> str:
    """``text``, unless it holds U+0000: no path, address or name may, and a later error would not name the
    key."""
    if "\0" in text:
        raise ValueError("it holds the character U+0000")
    return text


_PARSERS: dict[type, Callable[[str], Any]] = {
    bool: parse_boolean,
    int: parse_integer,
    float: parse_number,
    str: parse_text,
    Duration: parse_duration,
    MemorySize: parse_memory,
}


class Configuration(Mapping[str, str]):
    """Option texts by key; a value, copied on change."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def read(self, option: Option[T]) -> T:
        """The typed value of ``option``, its default where unset."""
        set_key = next((key for key in option.keys if key in self._values), None)
        return option.default if set_key is None else option.parse(self._values[set_key])

    def with_value(self, key: str, value: str) -> Configuration:
        return Configuration({**self._values, key: value})

    def without(self, key: str) -> Configuration:
        return Configuration({k: v for k, v in self._values.items() if k != key})
