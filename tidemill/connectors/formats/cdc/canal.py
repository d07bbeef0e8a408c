"""The ``canal-json`` format: Canal's messages, each with a list of rows.

``INSERT`` gives +I of each row of ``data``. ``UPDATE`` gives -U of each row with the values of the ``old``
entry at the same position, and +U of the row. ``DELETE`` gives -D of each row, ``CREATE`` nothing. An entry
of ``old`` has only the columns that changed in its own row. (Flink searches all entries of ``old``, and thus
retracts rows that never existed.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import RowKind
from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.formats.api import Block, Decoder, DecodeRequest
from tidemill.connectors.formats.cdc.format import CdcFormat
from tidemill.connectors.formats.cdc.messages import (
    Changes,
    ExplicitNulls,
    Indexes,
    Mask,
    Messages,
    assemble,
    completed,
    equals,
    instants,
    read_messages,
    valid,
)
from tidemill.connectors.formats.json.options import SHARED
from tidemill.connectors.formats.json.reader import JsonReader
from tidemill.connectors.formats.json.values import JsonRules
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import STRING, Field

_CORRUPT = "Corrupt Canal JSON message"
_FILTERS = ("database", "table")
_OPTIONS = (
    *(
        ConnectorOption(key=f"{part}.include", doc=f"Only messages whose {part} matches this expression.")
        for part in _FILTERS
    ),
    *SHARED,
)
_MILLIS = t.LocalZonedTimestampType(precision=3)
_METADATA: dict[str, t.LogicalType] = {
    "database": STRING,
    "table": STRING,
    "sql-type": t.MapType(key=STRING, value=t.INT),
    "pk-names": t.ArrayType(element=STRING),
    "ingestion-timestamp": _MILLIS,
    "event-timestamp": _MILLIS,
}
# Field of the message and its raw type, per metadata key.
_RAW: dict[str, tuple[str, t.LogicalType]] = {
    "database": ("database", STRING),
    "table": ("table", STRING),
    "sql-type": ("sqlType", t.MapType(key=STRING, value=t.INT)),
    "pk-names": ("pkNames", t.ArrayType(element=STRING)),
    "ingestion-timestamp": ("ts", t.BIGINT),
    "event-timestamp": ("es", t.BIGINT),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Elements:
    """The elements of a column of lists. ``messages``: the list of each; ``places``: its position in the
    list."""

    values: pa.Array
    messages: Indexes
    places: Indexes
    starts: Indexes
    lengths: Indexes

    @staticmethod
    def of(lists: pa.Array) -> _Elements:
        lengths = np.asarray(lists.value_lengths().fill_null(0)).astype(np.int64)
        starts = np.cumsum(lengths) - lengths
        messages = np.repeat(np.arange(len(lists), dtype=np.int64), lengths)
        places = np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(starts, lengths)
        return _Elements(
            values=lists.flatten(), messages=messages, places=places, starts=starts, lengths=lengths
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CanalDecoder:
    """``filters``: (field, expression) that messages must match whole."""

    wanted: tuple[Field, ...]
    metadata: tuple[tuple[Field, str], ...]
    rules: JsonRules
    numbered: bool
    filters: tuple[tuple[str, str], ...]

    def decode(self, block: Block) -> pa.Table:
        messages = read_messages(self._reader(), self._filtered(block.data), "Canal")
        kind, data = messages.column("type"), messages.column("data")
        included = self._included(messages)
        good = included & messages.of_type(
            pa.array(np.where(included, kind.to_numpy(zero_copy_only=False), "CREATE"), pa.string()),
            "type",
            ("INSERT", "UPDATE", "DELETE", "CREATE"),
        )
        good &= ~equals(kind, "CREATE")
        good &= messages.reject(good & ~valid(data), 'The "data" field is null.')
        rows = _Elements.of(data)
        whole = self._whole(messages, rows, good)
        parts = [
            _pick(rows, whole & equals(kind, "INSERT")[rows.messages], RowKind.INSERT, 0),
            *self._updates(messages, rows, whole, good & equals(kind, "UPDATE")),
            _pick(rows, whole & equals(kind, "DELETE")[rows.messages], RowKind.DELETE, 0),
        ]
        values = [(f, instants(messages.column(_RAW[key][0]), f.type)) for f, key in self.metadata]
        return assemble(parts, self.wanted, values + messages.numbers(self.numbered))

    def _whole(self, messages: Messages, rows: _Elements, good: Mask) -> Mask:
        """Marks the rows of ``good`` messages. Rejects messages with a null row."""
        missing = good[rows.messages] & ~valid(rows.values)
        messages.reject(_any_of(messages, rows.messages[missing]), 'A row in "data" is null.')
        return good[rows.messages] & ~missing

    def _updates(self, messages: Messages, rows: _Elements, whole: Mask, update: Mask) -> list[Changes]:
        old = _Elements.of(messages.column("old"))
        is_update = whole & update[rows.messages]
        has_old = rows.places < old.lengths[rows.messages]
        old_indexes = np.where(has_old, old.starts[rows.messages] + rows.places, 0)
        entries = old.values.take(pa.array(old_indexes, mask=~has_old))
        without_old = is_update & ~valid(entries)
        messages.reject(
            _any_of(messages, rows.messages[without_old]), 'The "old" field of an UPDATE message lacks a row.'
        )
        nulls = messages.explicit_nulls(update, "old")
        is_update &= ~without_old & nulls.readable[rows.messages]
        before = completed(entries, rows.values, _by_field(nulls, rows))
        return [
            _pick(rows, is_update, RowKind.UPDATE_BEFORE, 0, images=before),
            _pick(rows, is_update, RowKind.UPDATE_AFTER, 1),
        ]

    def _filtered(self, data: pa.Buffer) -> pa.Buffer:
        """``data`` with empty lines for other databases and tables, whose rows may have other types."""
        if not self.filters:
            return data
        names = tuple(Field(part, STRING) for part, _ in self.filters)
        reader = JsonReader(fields=names, rules=self.rules, error_prefix=_CORRUPT)
        messages = read_messages(reader, data, "Canal")
        kept_lines = set(messages.rows.lines[self._included(messages)].tolist())
        lines = messages.raw.split(b"\n")
        return pa.py_buffer(b"\n".join(x if i in kept_lines else b"" for i, x in enumerate(lines)))

    def _included(self, messages: Messages) -> Mask:
        included = np.ones(messages.count, dtype=bool)
        for part, expression in self.filters:
            matches = re.compile(expression).fullmatch
            encoded = messages.column(part).dictionary_encode()
            matching = [t for t in encoded.dictionary.to_pylist() if matches(t)]
            included &= equals(messages.column(part), *matching)
        return included

    def _reader(self) -> JsonReader:
        images = t.ArrayType(element=t.RowType(fields=self.wanted))
        fields = [Field("data", images), Field("old", images), Field("type", STRING)]
        keys = dict.fromkeys([*(part for part, _ in self.filters), *(key for _, key in self.metadata)])
        fields += [Field(*_RAW[key]) for key in keys]
        return JsonReader(fields=tuple(fields), rules=self.rules, error_prefix=_CORRUPT)


def _pick(
    rows: _Elements, selected: Mask, kind: RowKind, slot: int, *, images: pa.Array | None = None
) -> Changes:
    indexes = np.flatnonzero(selected).astype(np.int64)
    return Changes(
        images=rows.values if images is None else images,
        at=indexes,
        messages=rows.messages[indexes],
        kind=kind,
        slots=rows.places[indexes] * 2 + slot,
    )


def _any_of(messages: Messages, numbers: Indexes) -> Mask:
    mask = np.zeros(messages.count, dtype=bool)
    mask[numbers] = True
    return mask


def _by_field(nulls: ExplicitNulls, rows: _Elements) -> dict[str, Mask]:
    masks: dict[str, Mask] = {}
    for message, position, field in nulls.fields:
        if position < rows.lengths[message]:
            mask = masks.setdefault(field, np.zeros(len(rows.values), dtype=bool))
            mask[rows.starts[message] + position] = True
    return masks


class CanalFormat(CdcFormat):
    identifier = "canal-json"
    options: tuple[ConnectorOption, ...] = _OPTIONS
    insert = ('{"data":[', '],"type":"INSERT"}')
    delete = ('{"data":[', '],"type":"DELETE"}')

    def validate(self, table: CatalogTable, options: OptionValues, *, role: str) -> None:
        CdcFormat.validate(self, table, options, role=role)
        for part in _FILTERS:
            expression = options[f"{part}.include"] or ""
            try:
                re.compile(expression)
            except re.error as e:
                key = f"canal-json.{part}.include"
                raise ValidationError(f"Could not parse value '{expression}' for key '{key}': {e}") from None

    def metadata(self) -> Mapping[str, t.LogicalType]:
        return _METADATA

    def decoder(self, request: DecodeRequest) -> Decoder:
        options = self.read(request.options)
        filters = [(part, options[f"{part}.include"]) for part in _FILTERS]
        return CanalDecoder(
            wanted=request.wanted,
            numbered=request.numbered,
            metadata=request.metadata,
            rules=self.rules(options),
            filters=tuple((part, text) for part, text in filters if text is not None),
        )


FORMAT = CanalFormat()
