"""Partition columns live in directory names, Hive style: ``.../dt=2020-01-01/kind=a/file``.

Values are escaped as Hive does (%3A for ':'); ``__DEFAULT_PARTITION__`` (an option) is NULL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote

import pyarrow as pa

from tidemill.connectors.filters import ColumnFilter, columns_of, may_hold
from tidemill.connectors.formats.text_scalars import CSV_RULES, parse
from tidemill.errors import ConnectorError
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type

# What Hive and Flink escape in a directory name.
_ESCAPED = {ord(c): f"%{ord(c):02X}" for c in "\"#%'*/:=?\\{[]^\x7f" + "".join(map(chr, range(32)))}


def partition_values(path: str, fields: tuple[Field, ...], default: str) -> dict[str, pa.Scalar]:
    """The values of ``fields`` in a file's path: ``a=1/b=x/f.csv`` gives 1 and 'x'. ConnectorError if a value
    is missing or does not fit its type."""
    if not fields:
        return {}
    texts = dict(p.split("=", 1) for p in path.split("/")[:-1] if "=" in p)
    return {f.name: _value(f, texts, path, default) for f in fields}


def _value(field: Field, texts: dict[str, str], path: str, default: str) -> pa.Scalar:
    if field.name not in texts:
        raise ConnectorError(
            f"File {path} is in no directory '{field.name}=...', but the table is partitioned."
        )
    text = unquote(texts[field.name])
    if text == default:
        return pa.scalar(None, arrow_type(field.type))
    try:
        return pa.scalar(parse(field.type, text, CSV_RULES), arrow_type(field.type))
    except (ValueError, ArithmeticError, TypeError):
        raise ConnectorError(
            f"Partition value '{text}' of '{field.name}' in {path} is not {field.type}."
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPruning:
    """Decides by its directory alone whether a file may hold rows that pass all ``filters``. ``fields``: the
    partition columns in the filters. ``_known``: decisions by directory."""

    fields: tuple[Field, ...]
    filters: tuple[ColumnFilter, ...]
    default: str
    _known: dict[str, bool] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls, partitions: tuple[Field, ...], filters: tuple[ColumnFilter, ...], default: str
    ) -> PartitionPruning | None:
        """None if no filter has a column of ``partitions``."""
        names = {f.name for f in partitions}
        relevant = tuple(f for f in filters if columns_of(f) & names)
        filtered = frozenset().union(*map(columns_of, relevant))
        fields = tuple(f for f in partitions if f.name in filtered)
        return cls(fields=fields, filters=relevant, default=default) if relevant else None

    @property
    def seen(self) -> int:
        """The number of directories decided so far."""
        return len(self._known)

    def admits(self, path: str) -> bool:
        directory = path.rpartition("/")[0]
        admitted = self._known.get(directory)
        if admitted is None:
            admitted = self._known[directory] = self._admits(path)
        return admitted

    def _admits(self, path: str) -> bool:
        try:
            scalars = partition_values(path, self.fields, self.default)
        except ConnectorError:
            return True  # whoever reads the file says what is wrong with its path
        values = {name: value.as_py() for name, value in scalars.items()}
        return all(may_hold(f, values) for f in self.filters)


def partition_path(values: dict[str, str | None], default: str) -> str:
    """``a=1/b=x`` for values as text, in order."""
    return "/".join(
        f"{k.translate(_ESCAPED)}={(v or default).translate(_ESCAPED)}" for k, v in values.items()
    )
