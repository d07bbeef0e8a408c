"""A small schema registry over HTTP, for tests."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tests.connectors.json_server import Answer, json_server


@dataclass(slots=True)
class Registry:
    """``user``: name and password that it wants, '' for none; ``incompatible``: subjects that take nothing
    new; ``failures``: how many of the next requests fail with 500; ``requests``: those that came."""

    url: str = ""
    user: str = ""
    schemas: dict[int, str] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    incompatible: set[str] = field(default_factory=set)
    failures: int = 0
    requests: list[str] = field(default_factory=list)

    def add(self, schema: Any) -> int:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        for number, known in self.schemas.items():
            if known == text:
                return number
        self.schemas[len(self.schemas) + 1] = text
        return len(self.schemas)

    def answer(self, method: str, path: str, authorization: str, body: dict[str, str]) -> Answer:
        self.requests.append(f"{method} {path}")
        if self.failures:
            self.failures -= 1
            return 500, {"error_code": 50001, "message": "down"}
        if self.user and authorization != f"Basic {base64.b64encode(self.user.encode()).decode()}":
            return 401, {"error_code": 401, "message": "Unauthorized"}
        parts = [unquote(part) for part in path.partition("?")[0].strip("/").split("/")]
        if parts[:2] == ["schemas", "ids"]:
            known = self.schemas.get(int(parts[2]))
            return (200, {"schema": known}) if known else (404, {"error_code": 40403, "message": "not found"})
        return self._subject(parts[1], body["schema"], make=parts[-1] == "versions")

    def _subject(self, subject: str, schema: str, *, make: bool) -> Answer:
        there = self.subjects.setdefault(subject, [])
        for number in there:
            if json.loads(self.schemas[number]) == json.loads(schema):
                return 200, {"id": number, "version": 1, "subject": subject, "schema": self.schemas[number]}
        if not make:
            return 404, {"error_code": 40403, "message": "Schema not found"}
        if subject in self.incompatible:
            return 409, {"error_code": 409, "message": "field 'a' is new"}
        there.append(self.add(schema))
        return 200, {"id": there[-1]}


@contextmanager
def schema_registry(certificate: str = "") -> Iterator[Registry]:
    """``certificate`` as of ``json_server``."""
    registry = Registry()

    with json_server(registry.answer, certificate) as registry.url:
        yield registry
