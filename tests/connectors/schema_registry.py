"""A small schema registry over HTTP, for tests."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

Answer = tuple[int, dict[str, Any]]


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
def schema_registry() -> Iterator[Registry]:
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: dict[str, str]) -> None:
            authorization = self.headers.get("Authorization", "")
            status, found = registry.answer(self.command, self.path, authorization, body)
            data = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Tests are silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
