"""Partition columns live in directory names, Hive style: ``.../dt=2020-01-01/kind=a/file``.

Values are escaped as Hive does (%3A for ':'); ``__DEFAULT_PARTITION__`` (an option) is NULL.
"""

from __future__ import annotations

from urllib.parse import unquote

import pyarrow as pa

from tidemill.connectors.formats.text_scalars import CSV_RULES, parse
from tidemill.errors import ConnectorError
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type

# What Hive and Flink escape in a directory name.
_ESCAPED = {ord(c): f"%{ord(c):02X}" for c in "\"#%'*/:=?\\{[]^\x7f" + "".join(map(chr, range(32)))}


def partition_values(path: str, fields: tuple[Field, ...], default: str) -> dict[str, pa.Scalar]:
    """The values of ``fields`` in a file's path; ConnectorError when one is missing or does not fit."""
    if not fields:
        return {}
    texts = dict(p.split("=", 1) for p in path.split("/")[:-1] if "=" in p)
    return {f.name: _value(f, texts, path, default) for f in fields}


def _value(field: Field, texts: dict[str, str], path: str, default: str) -> pa.Scalar:
    if field.name not in texts:
        raise ConnectorError(f"File {path} lies in no directory '{field.name}=...' though it is a partition.")
    text = unquote(texts[field.name])
    if text == default:
        return pa.scalar(None, arrow_type(field.type))
    try:
        return pa.scalar(parse(field.type, text, CSV_RULES), arrow_type(field.type))
    except (ValueError, ArithmeticError, TypeError):
        raise ConnectorError(
            f"Partition value '{text}' of '{field.name}' in {path} is not {field.type}."
        ) from None


def partition_path(values: dict[str, str | None], default: str) -> str:
    """``a=1/b=x`` for values as text, in order."""
    return "/".join(
        f"{k.translate(_ESCAPED)}={(v or default).translate(_ESCAPED)}" for k, v in values.items()
    )
