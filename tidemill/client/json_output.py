"""``--format json``: one line per script, statements in order up to the first that fails.

    {"script": "q.sql", "statements": [
      {"sql": "SELECT ...", "kind": "query", "resultKind": "SUCCESS_WITH_CONTENT", "job_id": "...",
       "columns": [{"name": "c", "type": "BIGINT NOT NULL"}], "rows": [["+I", "a", 1]],
       "explain": "== Abstract ...", "stdout": ["+I[1]"],
       "error": {"code": "VALIDATION", "message": "...", "position": {"line": 1, "column": 8}},
       "elapsed_ms": 12}], "ok": true, "elapsed_ms": 413}

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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from tidemill.client.script import read_script
from tidemill.errors import InternalError, TidemillError
from tidemill.session.environment import TableEnvironment
from tidemill.session.result import StatementKind, TableResult
from tidemill.session.rows import values
from tidemill.sql.parser import parse_statement
from tidemill.sql.splitter import Piece, split

Document = dict[str, Any]
_STOPPED: Document = {"code": "CANCELED", "message": "Stopped."}
"""Of a statement at which Ctrl-C came."""


def run_script(
    file: str, variables: Mapping[str, str], session: Callable[[], TableEnvironment], out: TextIO
) -> None:
    """Writes the line for one script file to ``out``, a row at a time: no result is in memory as a whole.
    KeyboardInterrupt when the line has ended."""
    begun = time.monotonic()
    error: BaseException | None = None
    out.write(f'{{"script": {_json(os.path.basename(file))}, ')
    try:
        script = read_script(file, variables)
        environment = session()
    except TidemillError as e:
        out.write(f'"statements": [], "ok": false, "error": {_json(error_document(e))}')
    else:
        out.write('"statements": [')
        error = _statements(environment, script, out)
        out.write(f'], "ok": {_json(error is None)}')
    out.write(f', "elapsed_ms": {_elapsed(begun)}}}\n')
    out.flush()
    if isinstance(error, KeyboardInterrupt):
        raise error


def _statements(environment: TableEnvironment, script: str, out: TextIO) -> BaseException | None:
    """What ended the script before its end."""
    pieces, separator = split(script), ""
    while True:
        begun = time.monotonic()
        printed = io.StringIO()
        document = _Object(out, separator)
        error: BaseException | None = None
        try:
            piece = next(pieces, None)
            if piece is None:
                return None
            document.add("sql", piece.text)
            with contextlib.redirect_stdout(printed):
                _run(environment, piece, document)
        except (Exception, KeyboardInterrupt) as e:
            error = e
            document.add("error", _STOPPED if isinstance(e, KeyboardInterrupt) else error_document(_own(e)))
        if printed.getvalue():
            document.add("stdout", printed.getvalue().splitlines())
        document.add("elapsed_ms", _elapsed(begun))
        document.end()
        if error is not None:
            return error
        separator = ", "


def _run(environment: TableEnvironment, piece: Piece, document: _Object) -> None:
    result = environment.execute(parse_statement(piece.text, piece.position))
    document.add("kind", result.kind.value)
    if result.kind in (StatementKind.SET, StatementKind.RESET) and result.ok:
        return
    document.add("resultKind", result.result_kind)
    if result.job is not None:
        document.add("job_id", result.job.job_id)
    if result.kind is StatementKind.INSERT:
        result.wait()
        return
    document.add("columns", [{"name": f.name, "type": str(f.type)} for f in result.fields])
    rows = json_rows(result)
    if result.kind is StatementKind.EXPLAIN:
        rows = iter(explained := list(rows))
        document.add("explain", explained[0][1])
    document.add_all("rows", rows)


@dataclass(slots=True)
class _Object:
    """A JSON object that is written field by field; nothing of it, where it has none."""

    out: TextIO
    separator: str
    _begun: bool = False

    def add(self, name: str, value: Any) -> None:
        self._name(name)
        self.out.write(_json(value))

    def add_all(self, name: str, values: Iterable[Any]) -> None:
        """An array, each element as it comes; a whole one also where ``values`` raise."""
        self._name(name)
        self.out.write("[")
        separator = ""
        try:
            for value in values:
                self.out.write(separator + _json(value))
                separator = ", "
        finally:
            self.out.write("]")

    def end(self) -> None:
        self.out.write("}")

    def _name(self, name: str) -> None:
        self.out.write(f"{', ' if self._begun else self.separator + '{'}{_json(name)}: ")
        self._begun = True


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def json_rows(result: TableResult) -> Iterator[list[Any]]:
    """``[kind, value, ...]`` per change."""
    convert = values.or_rendered(values.json_value) if result.rendered else values.json_value
    converts = [convert(f.type, result.zone) for f in result.fields]
    for kind, carried in result.changes():
        yield [kind.short, *(to_json(v) for to_json, v in zip(converts, carried, strict=True))]


def error_document(error: TidemillError) -> Document:
    """The error as data; ``message`` has all a person needs to know."""
    document: Document = {"code": error.code, "message": str(error)}
    if error.position is not None:
        document["position"] = {"line": error.position.line, "column": error.position.column}
    return document


def _own(error: BaseException) -> TidemillError:
    return error if isinstance(error, TidemillError) else InternalError(f"{type(error).__name__}: {error}")


def _elapsed(begun: float) -> int:
    return int((time.monotonic() - begun) * 1000)
