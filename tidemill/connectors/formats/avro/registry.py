"""A client of Confluent's schema registry, over HTTP.

The registry never changes the schema of an id, nor the id of a schema under a subject. Each Python process
therefore caches both. Cost: a request per schema and process.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from tidemill.errors import ConnectorError, NotSupportedError

_TYPE = "application/vnd.schemaregistry.v1+json"
_PATIENCE = 10.0
_PAUSES = (0.2, 1.0, 0.0)
"""Seconds after each try of all URLs."""
_KNOWN = 1000


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Another host must not see the password."""

    def redirect_request(self, *_: Any) -> None:
        return None


class UnknownSchemaError(Exception):
    """The registry has no schema of an id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistry:
    """``urls``: of one registry, tried in turn; ``authorization``: the header, '' for none."""

    urls: tuple[str, ...]
    authorization: str = field(default="", repr=False)

    @staticmethod
    def of(urls: str, *, user: str, bearer: str, user_from_url: bool) -> SchemaRegistry:
        """``user``: ``name:password``; with ``user_from_url`` it stands in the first URL instead."""
        parts = [urlsplit(url.strip().rstrip("/")) for url in urls.split(",") if url.strip()]
        urls_without_user = tuple(urlunsplit(p._replace(netloc=p.netloc.rpartition("@")[2])) for p in parts)
        if user_from_url:
            user = unquote(parts[0].netloc.rpartition("@")[0])
        basic = f"Basic {base64.b64encode(user.encode()).decode()}" if user else ""
        return SchemaRegistry(urls=urls_without_user, authorization=f"Bearer {bearer}" if bearer else basic)

    def schema(self, schema_id: int) -> str:
        """The JSON text of the schema with an id. UnknownSchemaError if the registry has no such id;
        ConnectorError if the registry cannot be reached."""
        return _schema(self, schema_id)

    def register(self, subject: str, schema: str, *, register_missing: bool) -> int:
        """The id of ``schema`` under ``subject``. ``register_missing``: a schema that the registry lacks is
        registered. ConnectorError if the registry refuses the schema."""
        return _register(self, subject, schema, register_missing)

    def ask(self, path: str, body: Mapping[str, str] | None = None) -> tuple[int, dict[str, Any]]:
        """Status (below 500) and JSON of the answer. Tries all URLs three times, then raises
        ConnectorError."""
        reasons: dict[str, str] = {}
        for pause in _PAUSES:
            for url in self.urls:
                try:
                    return self._ask(url + path, body)
                except (OSError, ValueError) as e:
                    reasons[url] = str(getattr(e, "reason", e))
            time.sleep(pause)
        failures = "; ".join(f"{url}: {reason}" for url, reason in reasons.items())
        raise ConnectorError(
            f"The schema registry cannot be reached: {failures}",
            hint="The format's option 'url' names it, as http://host:8081.",
        )

    def _ask(self, url: str, body: Mapping[str, str] | None) -> tuple[int, dict[str, Any]]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": _TYPE, "Content-Type": _TYPE}
        if self.authorization:
            headers["Authorization"] = self.authorization
        try:
            request = urllib.request.Request(url, data, headers)
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=_PATIENCE) as answer:
                return answer.status, _json_object(answer.read())
        except urllib.error.HTTPError as e:
            if e.code >= 500:
                raise OSError(f"HTTP {e.code}") from None
            return e.code, _json_object(e.read())


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(data)
    except ValueError:
        answer = None
    return answer if isinstance(answer, dict) else {"message": data[:200].decode("utf-8", "replace")}


@lru_cache(_KNOWN)
def _schema(registry: SchemaRegistry, schema_id: int) -> str:
    status, answer = registry.ask(f"/schemas/ids/{schema_id}")
    if status == 404:
        raise UnknownSchemaError(f"The schema registry has no schema with id {schema_id}")
    _check(status, answer, f"schema {schema_id}", "schema")
    if answer.get("schemaType", "AVRO") != "AVRO" or answer.get("references"):
        kind = answer.get("schemaType", "AVRO")
        raise NotSupportedError(
            f"Schema {schema_id} of the registry, which is of type {kind} or refers to others"
        )
    return str(answer["schema"])


@lru_cache(_KNOWN)
def _register(registry: SchemaRegistry, subject: str, schema: str, register_missing: bool) -> int:
    path = f"/subjects/{quote(subject, safe='')}"
    status, answer = registry.ask(f"{path}/versions" if register_missing else path, {"schema": schema})
    if status == 409:
        raise ConnectorError(
            f"The schema registry refuses the table's schema for subject '{subject}', as it is not compatible"
            f" with the schemas that are there: {answer.get('message')}. The schema: {schema}"
        )
    if status == 404 and not register_missing:
        raise ConnectorError(
            f"The schema registry does not have the table's schema under subject '{subject}':"
            f" {answer.get('message')}. The schema: {schema}",
            hint="Register it, or set the format's option 'auto.register.schemas' to true.",
        )
    _check(status, answer, f"subject '{subject}'", "id")
    return int(answer["id"])


def _check(status: int, answer: Mapping[str, Any], subject: str, required_key: str) -> None:
    if status in (401, 403):
        raise ConnectorError(
            f"The schema registry refuses access to {subject} (HTTP {status}).",
            hint="The format's options 'basic-auth.user-info' and 'bearer-auth.token' give access.",
        )
    if status != 200 or required_key not in answer:
        raise ConnectorError(
            f"The schema registry answers for {subject}: HTTP {status}, {answer.get('message')}"
        )
