"""What the CDC formats share: messages read as rows of an envelope type, turned into changes.

A message gives no, one or several changes. A format says, vectorised over the messages, which
images become rows of which kind; ``assemble`` interleaves them in message order. Nothing is
reordered: an update's ``-U`` comes right before its ``+U``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.connectors.formats.api import RecordError
from tidemill.connectors.formats.json.reader import JsonRows
from tidemill.types.logical import Field

Indexes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Rows of one kind: ``images`` (struct array over all messages) at the messages ``at``; ``slot``
    orders the changes of one message."""

    images: pa.Array
    at: Indexes
    kind: RowKind
    slot: int


def image_columns(images: pa.Array, fields: tuple[Field, ...]) -> list[pa.Array]:
    """The fields of a struct array with its own NULLs applied."""
    flat = images.flatten()
    places = {images.type.field(i).name: i for i in range(images.type.num_fields)}
    return [flat[places[f.name]] for f in fields]


def assemble(
    changes: list[Changes],
    fields: tuple[Field, ...],
    metadata: list[tuple[str, pa.Array]],
    schema: pa.Schema,
) -> pa.Table:
    """One table of all changes in message order; ``metadata`` has one value per message."""
    chosen = [c for c in changes if len(c.at)]
    if not chosen:
        return schema.append(pa.field(KIND_COLUMN, pa.int8())).empty_table()
    messages = np.concatenate([c.at for c in chosen])
    slots = np.concatenate([np.full(len(c.at), c.slot) for c in chosen])
    kinds = np.concatenate([np.full(len(c.at), int(c.kind), dtype=np.int8) for c in chosen])
    order = np.lexsort((slots, messages))
    parts = [[a.take(pa.array(c.at)) for a in image_columns(c.images, fields)] for c in chosen]
    columns = [pa.concat_arrays(column).take(pa.array(order)) for column in zip(*parts, strict=True)]
    columns += [values.take(pa.array(messages[order])) for _, values in metadata]
    names = [f.name for f in fields] + [name for name, _ in metadata]
    by_name = dict(zip(names, columns, strict=True))
    ordered = [by_name[name] for name in schema.names]
    return pa.Table.from_arrays(
        [*ordered, pa.array(kinds[order])], schema=schema.append(pa.field(KIND_COLUMN, pa.int8()))
    )


def reject(mask: Mask, rows: JsonRows, reason: str, *, lenient: bool) -> Mask:
    """The messages to go on with: all but ``mask``. RecordError on the first one unless lenient."""
    if mask.any() and not lenient:
        raise RecordError(reason, line=int(rows.lines[int(np.argmax(mask))]))
    return ~mask


def valid(values: pa.Array) -> Mask:
    return np.asarray(values.is_valid())
