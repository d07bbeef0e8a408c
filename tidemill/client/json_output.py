"""``--format json``: one line per script, statements in order up to the first that fails.

    {"script": "q.sql", "ok": true, "elapsed_ms": 413, "statements": [
      {"sql": "SELECT ...", "kind": "query", "resultKind": "SUCCESS_WITH_CONTENT", "job_id": "...",
       "columns": [{"name": "c", "type": "BIGINT NOT NULL"}], "rows": [["+I", "a", 1]],
       "explain": "== Abstract ...", "stdout": ["+I[1]"],
       "error": {"code": "VALIDATION", "message": "...", "position": {"line": 1, "column": 8}},
       "elapsed_ms": 12}]}

``kind`` is set, reset, query, insert, explain or other, absent where the statement did not parse. Values:
booleans, integers, FLOAT and DOUBLE as JSON ("NaN", "Infinity", "-Infinity"), NULL as null, all else
as CAST(x AS STRING) gives it. Rows that came before an error stay beside it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tidemill.client.script import read_script
from tidemill.errors import InternalError, TidemillError
from tidemill.session import values
from tidemill.session.environment import TableEnvironment
from tidemill.session.result import StatementKind, TableResult
from tidemill.sql.parser import parse_statement
from tidemill.sql.splitter import Piece, split

Document = dict[str, Any]


def run_script(file: str, variables: Mapping[str, str], session: Callable[[], TableEnvironment]) -> str:
    """The line for one script file."""
    begun = time.monotonic()
    document: Document = {"script": os.path.basename(file), "ok": False, "statements": []}
    try:
        script = read_script(file, variables)
        statements = list(_statements(session(), script))
    except TidemillError as e:
        document["error"] = error_document(e)
    else:
        document["statements"] = statements
        document["ok"] = not any("error" in s for s in statements)
    document["elapsed_ms"] = _elapsed(begun)
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def _statements(environment: TableEnvironment, script: str) -> Iterator[Document]:
    pieces = split(script)
    while True:
        begun = time.monotonic()
        document: Document = {}
        printed = io.StringIO()
        try:
            piece = next(pieces, None)
            if piece is None:
                return
            document["sql"] = piece.text
            with contextlib.redirect_stdout(printed):
                _run(environment, piece, document)
        except Exception as e:
            document["error"] = error_document(_own(e))
        if printed.getvalue():
            document["stdout"] = printed.getvalue().splitlines()
        document["elapsed_ms"] = _elapsed(begun)
        yield document
        if "error" in document:
            return


def _run(environment: TableEnvironment, piece: Piece, document: Document) -> None:
    result = environment.execute(parse_statement(piece.text, piece.position))
    document["kind"] = result.kind.value
    if result.kind in (StatementKind.SET, StatementKind.RESET) and result.ok:
        return
    document["resultKind"] = result.result_kind
    if result.job is not None:
        document["job_id"] = result.job.job_id
    if result.kind is StatementKind.INSERT:
        result.wait()
        return
    document["columns"] = [{"name": f.name, "type": str(f.type)} for f in result.fields]
    document["rows"] = rows = []
    for row in json_rows(result):
        rows.append(row)
    if result.kind is StatementKind.EXPLAIN:
        document["explain"] = rows[0][1]


def json_rows(result: TableResult) -> Iterator[list[Any]]:
    """``[kind, value, ...]`` per change."""
    types = [f.type for f in result.fields]
    convert = values.shown_json if result.rendered else values.json_value
    for kind, carried in result.changes():
        yield [kind.short, *(convert(t, v, result.zone) for t, v in zip(types, carried, strict=True))]


def error_document(error: TidemillError) -> Document:
    """The error as data; ``message`` has all a person needs to know."""
    document: Document = {"code": error.code, "message": str(error)}
    if error.position is not None:
        document["position"] = {"line": error.position.line, "column": error.position.column}
    return document


def _own(error: Exception) -> TidemillError:
    return error if isinstance(error, TidemillError) else InternalError(f"{type(error).__name__}: {error}")


def _elapsed(begun: float) -> int:
    return int((time.monotonic() - begun) * 1000)
