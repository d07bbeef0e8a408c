"""The query of a job in the job's record: its INSERTs, and all objects that they name.

If a later start changes the query with a backfill, it computes the output of the old query. So the record
keeps the old statements, the definitions of their tables, views and functions, and the options of planning.
It keeps no secrets, and nothing that a Python program registers. ``former_session`` makes a session of the
record, with the secrets of the current session::

    {"format": 1, "inserts": ["INSERT INTO s SELECT k, SUM(v) AS v FROM t GROUP BY k"],
     "current": ["default_catalog", "default_database"], "objects": [...], "functions": [...],
     "folders": [...], "options": {"table.local-time-zone": "UTC"}}

If a query cannot be kept, the record says why: ``{"format": 1, "lacks": "..."}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tidemill.catalog.objects import CatalogFunction
from tidemill.catalog.table import CatalogFrame, CatalogObject, CatalogTable, CatalogView, ObjectPath
from tidemill.config.option import Configuration
from tidemill.config.secrets import MASK, is_secret, shown_value
from tidemill.errors import NotSupportedError, StateError
from tidemill.session import binding
from tidemill.session.catalogs.documents import function_document, object_documents
from tidemill.session.catalogs.reading import read
from tidemill.session.context import SessionContext
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement
from tidemill.sql.redaction import has_secret
from tidemill.user_functions.kinds import UserFunction

Json = dict[str, Any]
_FORMAT = 1
_PLANNING = "table."
"""The beginning of the keys of planning options."""
_PROGRAM = "DataFrames and functions that a Python program registers exist in that program alone."
_FROM_NOW_ON = "Start the old query, and alter the running job: ALTER JOB."


class RecordingSession(SessionContext):
    """Shares a session, and records the objects and functions that are looked up in it. NotSupportedError for
    an object that exists in a Python program alone."""

    def __init__(self, context: SessionContext) -> None:
        self.__dict__.update(context.__dict__)
        self.objects: dict[ObjectPath, CatalogObject | None] = {}
        self.functions: dict[str, CatalogFunction] = {}

    def resolve(self, path: ObjectPath) -> CatalogObject | None:
        found = super().resolve(path)
        self.objects[path] = found
        if isinstance(found, CatalogFrame):
            raise NotSupportedError(f"'{path}' is a DataFrame: a plan cannot keep it", hint=_PROGRAM)
        return found

    def user_function(self, parts: tuple[str, ...], path: ObjectPath) -> UserFunction | None:
        functions = self.catalogs.functions
        made = (functions.system(parts[0]) if len(parts) == 1 else None) or functions.find(path)
        if made is not None and made.declared is not None:
            message = f"'{made.name}' is a function of this program: a plan cannot keep it"
            raise NotSupportedError(message, hint=_PROGRAM)
        found = super().user_function(parts, path)
        if found is not None and made is not None:
            self.functions[str(made.path or made.name)] = made
        return found


def kept_query(context: SessionContext, inserts: Sequence[s.Insert]) -> Json:
    """The record of INSERTs of this session; {} without INSERTs."""
    if not inserts:
        return {}
    recording = RecordingSession(context)
    try:
        for insert in inserts:
            binding.bind_insert(recording, insert)
    except NotSupportedError as e:
        return {"format": _FORMAT, "lacks": e.message}
    found = [x for x in recording.objects.values() if isinstance(x, CatalogTable | CatalogView)]
    texts = [insert.text for insert in inserts]
    if any(map(has_secret, [*texts, *(x.text for x in found if isinstance(x, CatalogView))])):
        return {"format": _FORMAT, "lacks": "its text has a secret, which is not kept"}
    kept = {
        "format": _FORMAT,
        "inserts": texts,
        "current": [context.current_catalog, context.current_database],
        "objects": object_documents(map(_without_secrets, found)),
        "functions": [function_document(f) for f in recording.functions.values()],
        "folders": list(context.module_folders),
        "options": _planning(context.configuration),
    }
    made: Json = json.loads(json.dumps(kept))  # As it is read again: without tuples.
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """What ``kept_query`` writes."""

    format: int
    inserts: tuple[str, ...]
    current: tuple[str, str]
    objects: tuple[CatalogTable | CatalogView, ...]
    functions: tuple[CatalogFunction, ...]
    folders: tuple[str, ...]
    options: dict[str, str]


def former_session(
    record: Mapping[str, Any], context: SessionContext, what: str
) -> tuple[SessionContext, list[s.Insert]]:
    """A session in which the INSERTs of ``record`` have their old meaning, and these INSERTs. The session has
    the permissions and the secrets of ``context``. If there are no INSERTs, StateError names ``what`` ("the
    savepoint 'x'")."""
    kept = _read(record, what)
    made = SessionContext(_configured(context, kept.options))
    made.permissions = context.permissions
    made.permissions.check_options(kept.options)
    made.module_folders = kept.folders
    made.fault, made.clock = context.fault, context.clock
    catalogs = made.catalogs
    catalogs.current_catalog, catalogs.current_database = kept.current
    for entry in kept.objects:
        catalogs.temporary[entry.path] = _with_secrets(entry, context, what)
    for function in kept.functions:
        catalogs.functions.create(replace(function, temporary=True), ignore_if_exists=True)
    return made, list(_inserts(kept.inserts, what))


def _read(record: Mapping[str, Any], what: str) -> _Kept:
    lacks = record.get("lacks", "") if record else "it was made by an earlier version, or by no statement"
    if lacks:
        raise StateError(
            f"{_upper(what)} does not say what its query was ({lacks}), so what its sinks have is not known",
            hint=_FROM_NOW_ON,
        )
    if record.get("format") != _FORMAT:
        raise StateError(
            f"{_upper(what)} says what its query was in format {record.get('format')}, which this version "
            "does not know"
        )
    return read(_Kept, dict(record), "query")


def _inserts(texts: Sequence[str], what: str) -> Iterator[s.Insert]:
    for text in texts:
        found = parse_statement(text)
        if not isinstance(found, s.Insert):
            raise StateError(f"{_upper(what)} is damaged: its query is no INSERT")
        yield found


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _planning(options: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in options.items() if k.startswith(_PLANNING) and not is_secret(k)}


def _configured(context: SessionContext, options: Mapping[str, str]) -> Configuration:
    own = {key: value for key, value in context.configuration.items() if not key.startswith(_PLANNING)}
    return Configuration({**own, **options})


def _without_secrets(entry: CatalogTable | CatalogView) -> CatalogTable | CatalogView:
    if isinstance(entry, CatalogView):
        return entry
    shown = {key: shown_value(key, value) for key, value in entry.options.items()}
    return replace(entry, options=shown, upkeep=None)


def _with_secrets(
    entry: CatalogTable | CatalogView, context: SessionContext, what: str
) -> CatalogTable | CatalogView:
    """The old table, with the secrets of the current table of the same name."""
    if isinstance(entry, CatalogView) or not any(MASK in value for value in entry.options.values()):
        return entry
    found = context.catalogs.find(entry.path)
    now = found.options if isinstance(found, CatalogTable) else {}
    for key, value in entry.options.items():
        if MASK in value and (key not in now or shown_value(key, now[key]) != value):
            raise StateError(
                f"{_upper(what)} keeps no secrets, and option '{key}' of table '{entry.path}' was one",
                hint="Create the table as it was: its secrets are taken from there.",
            )
    return replace(entry, options={k: now[k] if MASK in v else v for k, v in entry.options.items()})
