"""Turns CDC messages, read as rows of an envelope type, into changes; all CDC formats share this module.

A message gives no, one or several changes. A format selects, for all messages at once, which
images become rows of which kind. ``assemble`` then sorts the rows by message; an update's ``-U``
comes right before its ``+U``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.connectors.formats.api import LINE_COLUMN, RecordError
from tidemill.connectors.formats.json.reader import TOO_DEEP, JsonReader, JsonRows, objects
from tidemill.types.logical import BIGINT, Field
from tidemill.types.physical import arrow_type

Indexes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplicitNulls:
    """``fields``: (message, position of the image, field) of each null; ``readable``: the usable messages."""

    fields: list[tuple[int, int, str]]
    readable: Mask


@dataclass(frozen=True, kw_only=True)
class Messages:
    """The messages of one block. ``name``: of the format, for errors; ``lenient``: bad messages are
    skipped."""

    rows: JsonRows
    raw: bytes
    name: str
    lenient: bool

    @property
    def count(self) -> int:
        return int(self.rows.table.num_rows)

    def numbers(self, wanted: bool) -> list[tuple[Field, pa.Array]]:
        """The column ``$line`` with the messages' line numbers, if it is ``wanted``; else an empty list."""
        return [(Field(LINE_COLUMN, BIGINT), pa.array(self.rows.lines))] if wanted else []

    def column(self, name: str) -> pa.Array:
        return self.rows.table.column(name).combine_chunks()

    def line(self, message: int) -> bytes:
        """The line that a message came from."""
        number = int(self.rows.lines[message])
        start = 0 if number == 0 else int(self._ends[number - 1]) + 1
        end = int(self._ends[number]) if number < len(self._ends) else len(self.raw)
        return self.raw[start:end]

    @cached_property
    def _ends(self) -> Indexes:
        return np.flatnonzero(np.frombuffer(self.raw, dtype=np.uint8) == 10).astype(np.int64)

    def reject(self, bad: Mask, reason: str) -> Mask:
        """Marks all messages but the bad ones. RecordError for the first bad one unless lenient."""
        if bad.any() and not self.lenient:
            first = int(np.argmax(bad))
            excerpt = self.line(first)[:200].decode("utf-8", "replace").removeprefix("\ufeff").strip()
            raise RecordError(
                f"Corrupt {self.name} JSON message '{excerpt}'. {reason}",
                line=int(self.rows.lines[first]),
            )
        return ~bad

    def of_type(self, kinds: pa.Array, key: str, known: tuple[str, ...]) -> Mask:
        """Marks the messages whose type, the field ``key``, is one of ``known``. Rejects the others."""
        missing = ~valid(kinds)
        good = self.reject(missing, f'It has no "{key}".')
        unknown = good & ~equals(kinds, *known)
        if unknown.any() and not self.lenient:
            value = kinds[int(np.argmax(unknown))].as_py()
            self.reject(unknown, f'Unknown "{key}" value "{value}".')
        return good & ~unknown

    def explicit_nulls(self, among: Mask, part: str) -> ExplicitNulls:
        """Finds the fields that messages write as null in ``part``, an object or an array of objects. Columns
        cannot tell such a field from a missing field."""
        null_fields: list[tuple[int, int, str]] = []
        readable = np.ones(self.count, dtype=bool)
        for message in np.flatnonzero(among).tolist():
            line = self.line(message)
            if b"null" not in line:
                continue
            try:
                nodes = objects(line)
            except RecursionError:
                readable[message] = False  # the columns do not include the part that is nested too deeply
                continue
            first = int(np.searchsorted(self.rows.lines, self.rows.lines[message]))
            images = nodes[message - first].get(part)
            for position, image in enumerate(images if isinstance(images, list) else [images]):
                if isinstance(image, dict):
                    null_fields += [
                        (message, position, field) for field, value in image.items() if value is None
                    ]
        return ExplicitNulls(fields=null_fields, readable=self.reject(~readable, TOO_DEEP))


def read_messages(reader: JsonReader, data: pa.Buffer, name: str) -> Messages:
    rows = reader.read(data)
    return Messages(rows=rows, raw=data.to_pybytes(), name=name, lenient=reader.rules.lenient)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Rows of one kind: element ``at[i]`` of ``images`` (struct array) is a row of message
    ``messages[i]``; ``slots`` order the changes of one message."""

    images: pa.Array
    at: Indexes
    messages: Indexes
    kind: RowKind
    slots: Indexes


def changes(images: pa.Array, among: Mask, kind: RowKind, slot: int) -> Changes:
    """A row for each message of the mask ``among``; ``images`` has one element per message."""
    at = np.flatnonzero(among).astype(np.int64)
    return Changes(images=images, at=at, messages=at, kind=kind, slots=np.full(len(at), slot))


def assemble(
    parts: list[Changes],
    fields: tuple[Field, ...],
    metadata: list[tuple[Field, pa.Array]],
) -> pa.Table:
    """One table of all changes in message order: fields, metadata (one value per message), ``$kind``."""
    every = (*fields, *(f for f, _ in metadata))
    schema = pa.schema([*((f.name, arrow_type(f.type)) for f in every), (KIND_COLUMN, pa.int8())])
    chosen = [p for p in parts if len(p.at)]
    if not chosen:
        return schema.empty_table()
    messages = np.concatenate([p.messages for p in chosen])
    kinds = np.concatenate([np.full(len(p.at), int(p.kind), dtype=np.int8) for p in chosen])
    order = np.lexsort((np.concatenate([p.slots for p in chosen]), messages))
    images = [[a.take(pa.array(p.at)) for a in _columns(p.images, fields)] for p in chosen]
    columns = [pa.concat_arrays(column).take(pa.array(order)) for column in zip(*images, strict=True)]
    columns += [values.take(pa.array(messages[order])) for _, values in metadata]
    return pa.Table.from_arrays([*columns, pa.array(kinds[order])], schema=schema)


def _columns(images: pa.Array, fields: tuple[Field, ...]) -> list[pa.Array]:
    """The fields of a struct array with its own NULLs applied."""
    flat = images.flatten()
    places = {images.type.field(i).name: i for i in range(images.type.num_fields)}
    return [flat[places[f.name]] for f in fields]


def completed(old: pa.Array, new: pa.Array, nulls: dict[str, Mask]) -> pa.Array:
    """The image before an update of which ``old`` has only what changed: its other fields are those of
    ``new``, except where ``nulls`` says that ``old`` has the field and it is NULL."""
    children = []
    for child, before, after in zip(old.type, old.flatten(), new.flatten(), strict=True):
        explicit = nulls.get(child.name)
        if explicit is not None:
            after = pc.if_else(pa.array(explicit), pa.scalar(None, after.type), after)
        children.append(_first_valid(before, after))
    return pa.StructArray.from_arrays(children, fields=list(old.type))


def _first_valid(first: pa.Array, second: pa.Array) -> pa.Array:
    """coalesce, for nested types too."""
    if first.null_count == 0:
        return first
    places = np.where(valid(first), np.arange(len(first)), len(first) + np.arange(len(first)))
    return pa.concat_arrays([first, second]).take(pa.array(places))


def valid(values: pa.Array) -> Mask:
    return np.asarray(values.is_valid())


def equals(values: pa.Array, *texts: str) -> Mask:
    return np.asarray(pc.fill_null(pc.is_in(values, pa.array(texts, pa.string())), False))


def instants(values: pa.Array, kind: Any) -> pa.Array:
    """Milliseconds since 1970, as number or text, as ``kind``'s timestamps; other types as they are."""
    target = arrow_type(kind)
    if not pa.types.is_timestamp(target) or pa.types.is_timestamp(values.type):
        return values if values.type == target else values.cast(target)
    return values.cast(pa.int64()).cast(pa.timestamp("ms", tz="UTC")).cast(target)
