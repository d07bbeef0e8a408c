"""The one rule for what is a secret: never shown, never kept, no part of what identifies a job.

An option is a secret by its key (Flink's list of words, and a few more); other values may carry one within
a URL, as a password before the host or as a parameter.
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
    """``text`` with the passwords of URLs in it replaced."""
    return _PARAMETER.sub(rf"\1{MASK}", _USER.sub(rf"\1:{MASK}@", text))


def shown_value(key: str, value: str) -> str:
    """The value of an option as it may be shown."""
    return MASK if is_secret(key) else masked(value)


def without_secrets(options: Mapping[str, str]) -> dict[str, str]:
    """What of ``options`` may be kept and compared: a password that changes makes no other table."""
    return {key: masked(value) for key, value in options.items() if not is_secret(key)}
