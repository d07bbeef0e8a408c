"""Maps the option names of the proposal for Flink's gateway (FLIP-91) to their final names.

endpoint.rest.port = 8085   ->   sql-gateway.endpoint.rest.port = 8085
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidemill.config import gateway_options as g
from tidemill.config import hiveserver2_options as h
from tidemill.errors import ValidationError

_BECAME = {
    "endpoint.protocol": g.ENDPOINTS.key,
    "endpoint.rest.address": g.REST_ADDRESS.key,
    "endpoint.hiveserver2.address": h.HOST.key,
    "endpoint.hiveserver2.port": h.PORT.key,
    "sql-gateway.session.idle.timeout": g.IDLE_TIMEOUT.key,
    "sql-gateway.session.check.interval": g.CHECK_INTERVAL.key,
    "sql-gateway.worker.keepalive.time": g.KEEPALIVE.key,
}
_OF_AN_ENDPOINT = re.compile(r"endpoint\.([^.]+)\.(.+)")


def renamed(options: Mapping[str, str]) -> dict[str, str]:
    """``options`` with final names. ValidationError if two names of one option have different values."""
    by_name: dict[str, str] = {}
    for key, value in options.items():
        name = _name(key)
        if by_name.setdefault(name, value) != value:
            raise ValidationError(f"Option '{name}' is given twice, with different values: also as '{key}'.")
    return by_name


def _name(key: str) -> str:
    if key in _BECAME:
        return _BECAME[key]
    return f"sql-gateway.{key}" if _OF_AN_ENDPOINT.fullmatch(key) else key
