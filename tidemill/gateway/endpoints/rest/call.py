"""Parses and checks one request: handles are UUIDs, the body is a JSON object."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tidemill.gateway.api import HANDLE, LONGEST_TIMEOUT
from tidemill.gateway.endpoints.rest.errors import HttpError
from tidemill.gateway.endpoints.rest.rows import FORMATS

NEWEST = 4
_HUMP = re.compile(r"(?<=[a-z])([A-Z]+)")
_FIELDS = {
    "session_name": "sessionName",
    "execution_timeout": "executionTimeout",
    "execution_config": "executionConfig",
    "script_uri": "scriptUri",
}
"""Field names of request bodies in the protocol's proposal (FLIP-91), and their final names."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """``version``: 1 to 4. ``parameters``: of the path, undecoded; ``accept``: the header. Properties raise
    HttpError 400 if their part of the request is invalid."""

    version: int
    user: str
    parameters: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    accept: str = ""

    def at_token(self, token: str) -> Call:
        return replace(self, parameters={**self.parameters, "token": token})

    @property
    def session(self) -> str:
        return self._handle("session_handle")

    @property
    def operation(self) -> str:
        return self._handle("operation_handle")

    @property
    def token(self) -> int:
        text = self.parameters["token"]
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise _unresolved("path", "token", text)
        return int(text)

    @property
    def seconds(self) -> float:
        """The duration of an event stream in seconds; infinite by default."""
        text = self.query.get("seconds", "")
        if not text:
            return math.inf
        if not text.isascii() or not text.isdigit() or len(text) > 9:
            raise _unresolved("query", "seconds", text)
        return int(text)

    @property
    def row_format(self) -> str:
        """The row format; always JSON in v1."""
        requested = self.query.get("rowFormat", self.query.get("row_format", "JSON"))
        text = requested if self.version > 1 else "JSON"
        if text.upper() not in FORMATS:
            raise _unresolved("query", "rowFormat", text)
        return text.upper()

    def fields(self) -> dict[str, Any]:
        """The fields of the body; empty without a body."""
        return self._fields

    @cached_property
    def _fields(self) -> dict[str, Any]:
        """Fields by their final names. If a field has both spellings, Flink's final one wins."""
        body_fields = self._body_fields
        return {
            **{_FIELDS[key]: value for key, value in body_fields.items() if key in _FIELDS},
            **body_fields,
        }

    @property
    def is_snake(self) -> bool:
        """Whether the request has names in snake_case, as in the protocol's proposal."""
        if "row_format" in self.query:
            return True
        try:
            return any(key in _FIELDS for key in self._body_fields)
        except HttpError:  # an invalid body of a request that needs none
            return False

    def answer(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """``answer``, with its names also in snake_case if the request uses snake_case."""
        snake_fields = {snake(key): value for key, value in answer.items()} if self.is_snake else {}
        return {**answer, **snake_fields}

    @cached_property
    def _body_fields(self) -> dict[str, Any]:
        if not self.body.strip():
            return {}
        try:
            document = json.loads(self.body)
        except (ValueError, RecursionError) as e:
            raise HttpError(400, f"Request did not match expected format JSON: {e}") from e
        if not isinstance(document, dict):
            raise HttpError(400, "Request did not match expected format JSON: it is no object.")
        return document

    def text(self, *names: str) -> str:
        """The first of these fields that is not null; '' if all are missing."""
        value = next((v for v in map(self.fields().get, names) if v is not None), "")
        if not isinstance(value, str):
            raise HttpError(400, f"Request did not match expected format: '{names[0]}' is no text.")
        return _encodable(value)

    def number(self, name: str, default: int = 0) -> int:
        value = self.fields().get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            raise HttpError(400, f"Request did not match expected format: '{name}' is no whole number.")
        return value

    @property
    def timeout(self) -> float:
        """The timeout of a statement in seconds; 0 for none."""
        return min(max(self.number("executionTimeout") / 1000, 0), LONGEST_TIMEOUT)

    def options(self, name: str) -> dict[str, str]:
        """A field that maps option keys to texts."""
        value = self.fields().get(name)
        if value is None:
            return {}
        if not isinstance(value, dict) or any(isinstance(v, dict | list) for v in value.values()):
            raise HttpError(400, f"Request did not match expected format: '{name}' is no map of texts.")
        return {_encodable(k): _option(v) for k, v in value.items() if v is not None}

    def _handle(self, name: str) -> str:
        text = self.parameters[name]
        if not HANDLE.fullmatch(text):
            raise _unresolved("path", name, text)
        return text.lower()


def snake(name: str) -> str:
    """``nextResultUri`` -> ``next_result_uri``."""
    return _HUMP.sub(r"_\1", name).lower()


def _option(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else _encodable(str(value))


def _encodable(text: str) -> str:
    """Halves of surrogate pairs, which JSON can escape, are '?' as in Java."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _unresolved(where: str, name: str, text: str) -> HttpError:
    return HttpError(400, f'Cannot resolve {where} parameter ({name}) from value "{text[:200]}".')
