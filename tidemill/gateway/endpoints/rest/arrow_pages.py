"""Pages of a result in Arrow's stream format, for requests that accept ``ARROW``: an extension of Flink's
protocol.

The rows are carriers (``types.physical``); changes have their kinds in ``$kind``. The schema's metadata has,
under ``tidemill``, the facts that the page's JSON would have beside its rows, and the format's version:

    {"version": 1, "isQueryResult": true, "resultKind": "SUCCESS_WITH_CONTENT", "columns": [...]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from tidemill.errors import ConnectorError

ARROW = "application/vnd.apache.arrow.stream"
_FACTS, _VERSION = b"tidemill", 1


def written(rows: pa.Table, facts: Mapping[str, Any]) -> bytes:
    """Encodes a page. ``facts``: ``columns`` and other properties of the page, as JSON."""
    document = json.dumps({"version": _VERSION, **facts}, ensure_ascii=False)
    schema = rows.schema.with_metadata({_FACTS: document})
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, schema) as writer:
        writer.write_table(rows.cast(schema))
    content: bytes = stream.getvalue().to_pybytes()
    return content


def read(content: bytes) -> dict[str, Any]:
    """Decodes a page to the form of its JSON, with a table as ``data``. ConnectorError for another
    version."""
    with pa.ipc.open_stream(content) as stream:
        rows = stream.read_all()
    facts = json.loads((rows.schema.metadata or {}).get(_FACTS, b"{}"))
    if facts.pop("version", 0) != _VERSION:
        raise ConnectorError(
            "The gateway and this client have different versions of Arrow pages.",
            hint="Use a client of the gateway's version.",
        )
    return {**facts, "results": {"columns": facts.pop("columns"), "data": rows.replace_schema_metadata()}}
