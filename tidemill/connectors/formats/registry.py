"""Finds formats by identifier among the entry points of ``tidemill.formats``.

A format is loaded when a table first names it.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from tidemill.connectors.formats.api import Format
from tidemill.connectors.option_values import spelling_hint
from tidemill.errors import ValidationError

GROUP = "tidemill.formats"
FILE_OPTIONS = ("protobuf.descriptor-file",)
"""Options of formats that name a file."""

_EXTRAS = {"fastavro": "avro", "google": "protobuf", "google.protobuf": "protobuf"}
"""The extra of Tidemill that installs each optional package."""


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {e.name: e for e in entry_points(group=GROUP)}


@cache
def _load(identifier: str) -> Format:
    try:
        loaded: Format = _entry_points()[identifier].load()
    except ModuleNotFoundError as e:
        raise ValidationError(
            f"Format '{identifier}' needs the package '{e.name}', which is not installed.",
            hint=f"pip install 'tidemill[{_EXTRAS[e.name]}]'" if e.name in _EXTRAS else "",
        ) from None
    return loaded


def identifiers() -> tuple[str, ...]:
    """The values that 'format' can have here, sorted."""
    return tuple(sorted(_entry_points()))


def find_format(identifier: str) -> Format:
    """The format with an identifier. ValidationError if there is none; it lists the existing formats."""
    if identifier in _entry_points():
        return _load(identifier)
    raise ValidationError(
        f"Could not find any format factory for identifier '{identifier}'.",
        expected=identifiers(),
        hint=spelling_hint([identifier], identifiers()),
    )
