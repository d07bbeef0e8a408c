"""The endpoint's own description, as OpenAPI 3: made of the table of routes."""

from __future__ import annotations

import re
from typing import Any

from tidemill.gateway.endpoints.rest.arrow_pages import ARROW
from tidemill.gateway.endpoints.rest.call import NEWEST
from tidemill.gateway.endpoints.rest.events import EVENTS
from tidemill.gateway.endpoints.rest.handlers import Handler, fetch_results
from tidemill.gateway.endpoints.rest.routes import ROUTES, RestRoute, versions_of

_PARAMETER = re.compile(r"\{(\w+)\}")
_ERRORS = {
    "description": "What went wrong.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {"errors": {"type": "array", "items": {"type": "string"}}},
            }
        }
    },
}
_TIMEOUT = {"type": "integer", "description": "Milliseconds; 0 or less for none."}
_FIELDS: dict[str, dict[str, Any]] = {
    "position": {"type": "integer"},
    "executionTimeout": _TIMEOUT,
    "execution_timeout": _TIMEOUT,
    "properties": {"type": "object", "additionalProperties": {"type": "string"}},
    "executionConfig": {"type": "object", "additionalProperties": {"type": "string"}},
}
_BYTES = {"schema": {"type": "string", "format": "binary"}}
_MORE: dict[Handler, dict[str, Any]] = {
    fetch_results: {ARROW: _BYTES, EVENTS: {"schema": {"type": "string"}}}
}
"""What an answer may be beside JSON, for requests that accept it."""


def openapi(version: int = NEWEST) -> dict[str, Any]:
    """The description of one version."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        if version in versions_of(route):
            paths.setdefault(f"/v{version}{route.path}", {})[route.method.lower()] = _operation(
                route, version
            )
    return {
        "openapi": "3.0.3",
        "info": {"title": "SQL gateway", "version": f"v{version}"},
        "paths": paths,
    }


def _operation(route: RestRoute, version: int) -> dict[str, Any]:
    parameters = [_in_path(name) for name in _PARAMETER.findall(route.path)]
    if "token" in route.path and version > 1:
        formats = {"type": "string", "enum": ["JSON", "PLAIN_TEXT"], "default": "JSON"}
        parameters.append({"name": "rowFormat", "in": "query", "schema": formats})
    described: dict[str, Any] = {
        "operationId": route.id,
        "summary": (route.handler.__doc__ or "").strip(),
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "Done.",
                "content": {
                    "application/json": {"schema": {"type": "object"}},
                    **_MORE.get(route.handler, {}),
                },
            },
            "400": _ERRORS,
            "500": _ERRORS,
        },
    }
    if route.fields:
        properties = {name: _FIELDS.get(name, {"type": "string"}) for name in route.fields}
        schema = {"type": "object", "properties": properties}
        described["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return described


def _in_path(name: str) -> dict[str, Any]:
    schema = {"type": "string", "format": "uuid"} if name.endswith("_handle") else {"type": "string"}
    return {"name": name, "in": "path", "required": True, "schema": schema}
