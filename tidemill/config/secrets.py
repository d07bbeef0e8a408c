"""The one rule for secrets, which are never displayed or stored, and are no part of a job's identity.

An option is a secret if its key has one of Flink's words, or one of a few more. Other values may have a
secret in a URL: a password before the host, or a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MASK = "******"

_WORDS = (
    "password",
    "passwd",
    "secret",
    "token",
    "credential",
    "access-key",
    "access.key",
    "account.key",
    "apikey",
    "api-key",
    "service-key",
    "auth-params",
    "basic-auth",
    "jaas.config",
    "keystore.key",
    "key.pem",
    "http-headers",
)
_USER = re.compile(r"(://[^/?#\s:@']*):[^/?#\s']*@")
_PARAMETER = re.compile(rf"(?i)([?&;][\w.-]*(?:{'|'.join(map(re.escape, _WORDS))})[\w.-]*=)[^&;#\s']*")


def is_secret(key: str) -> bool:
    lowered = key.lower()
    return any(word in lowered for word in _WORDS)


def masked(text: str) -> str:
    """``text`` with the passwords of URLs masked: ``s3://u:pw@h`` gives ``s3://u:******@h``."""
    return _PARAMETER.sub(rf"\1{MASK}", _USER.sub(rf"\1:{MASK}@", text))


def shown_value(key: str, value: str) -> str:
    """The value of an option for display, with its secrets masked."""
    return MASK if is_secret(key) else masked(value)


def without_secrets(options: Mapping[str, str]) -> dict[str, str]:
    """The ``options`` to store and compare, without secrets: another password does not make another table."""
    return {key: masked(value) for key, value in options.items() if not is_secret(key)}
