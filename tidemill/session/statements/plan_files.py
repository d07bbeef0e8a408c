"""The file of a compiled plan: the statement, and the session it was compiled in, as JSON.

People edit plan files, and files get damaged. Whatever is in the file, ``read`` gives a plan or raises an
error that names the file and the place in it, as ``session.catalogs[0].databases[0].objects[1].path.name``.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidemill.errors import ConnectorError, StateError, TidemillError
from tidemill.files.storage import Storage
from tidemill.session import snapshot
from tidemill.session.context import SessionContext
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement

Json = dict[str, Any]
_FORMAT = 1
_PRIVATE = 0o600
"""Options of tables hold passwords."""
_KEYS = ("format", "statement", "session")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``session`` has the catalogs of the session that compiled the plan, and none of its options."""

    text: str
    statement: s.Insert | s.StatementSet
    session: SessionContext


def document(statement: str, session: Json) -> Json:
    return {"format": _FORMAT, "statement": statement, "session": session}


def write(storage: Storage, name: str, file: str, kept: Json) -> None:
    data = json.dumps(kept, indent=2).encode()
    try:
        storage.publish(name, lambda stream: stream.write(data))
        if storage.is_local:
            os.chmod(storage.absolute(name), _PRIVATE)
    except (OSError, pa.ArrowException) as e:
        raise ConnectorError(f"Cannot write the plan file '{file}': {e}") from None


def read(storage: Storage, name: str, file: str) -> Plan:
    """``file`` is the plan's path, as the statement has it."""
    try:
        text = storage.read_bytes(name)
    except (OSError, pa.ArrowException) as e:
        raise ConnectorError(f"Cannot read the plan file '{file}': {e}") from None
    return plan_of(text, file)


def plan_of(text: bytes, file: str) -> Plan:
    """The plan whose JSON is ``text``."""
    kept = _json(text, file)
    if not isinstance(kept, dict) or "statement" not in kept:
        raise _no_plan(file)
    if kept.get("format") != _FORMAT:
        raise StateError(
            f"The plan in '{file}' has format {kept.get('format')}, which this version does not know"
        )
    try:
        return _plan(kept)
    except TidemillError as e:
        raise StateError(f"The plan file '{file}' is damaged: {e}") from None


def _json(text: bytes, file: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as e:
        raise _no_plan(file, str(e)) from None


def _no_plan(file: str, reason: str = "") -> StateError:
    return StateError(
        f"'{file}' is not a plan that COMPILE PLAN of Tidemill wrote{reason and ': '}{reason}",
        hint="Plans of Flink name its own operators: compile the statement again.",
    )


def _plan(kept: Json) -> Plan:
    for key in kept:
        if key not in _KEYS:
            raise StateError(f"'{key}' is not known", expected=_KEYS)
    text = kept["statement"]
    if not isinstance(text, str):
        raise StateError("statement: expected a text")
    return Plan(text=text, statement=_statement(text), session=_session(kept.get("session")))


def _statement(text: str) -> s.Insert | s.StatementSet:
    try:
        found = parse_statement(text)
    except TidemillError as e:
        raise StateError(f"statement: {e}") from None
    if not isinstance(found, s.Insert | s.StatementSet):
        raise StateError("statement: expected INSERT or EXECUTE STATEMENT SET")
    return found


def _session(kept: object) -> SessionContext:
    if not isinstance(kept, dict):
        raise StateError("session: expected an object")
    return snapshot.restored({**kept, "defaults": {}, "options": {}}, "session")
