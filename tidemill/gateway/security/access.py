"""Authentication: maps the credentials of a request to a user's name, or refuses the request.

Without authentication all requests have the user '', and the gateway listens only on this machine: it starts
on another address only if the option for authentication is set.
"""

from __future__ import annotations

import base64
import ipaddress
import math
from dataclasses import dataclass, field
from functools import lru_cache

from tidemill.config import gateway_options as g
from tidemill.config.option import Configuration
from tidemill.errors import SetupError
from tidemill.gateway.api import GatewayError
from tidemill.gateway.security.audit import Audit
from tidemill.gateway.security.guesses import Guesses
from tidemill.gateway.security.passes import Passes
from tidemill.gateway.security.users import Users, users_by, users_in


class AccessError(GatewayError):
    """The request has no credentials, or wrong ones."""


class TooManyGuessesError(AccessError):
    """Too many wrong logins: the gateway checks no credentials for ``seconds``."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Too many wrong logins: try again in {math.ceil(seconds)} seconds.")
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Access:
    """``users`` is None without authentication."""

    users: Users | None = None
    passes: Passes = field(default_factory=Passes)
    audit: Audit = field(default_factory=Audit)
    guesses: Guesses = field(default_factory=Guesses)

    @classmethod
    def of(cls, config: Configuration, audit: Audit) -> Access:
        """The access that the options describe. SetupError if the users' file or function cannot be used."""
        kind = config.read(g.AUTHENTICATION).upper()
        if kind != "PASSWORD":
            return cls(audit=audit)
        file, function = config.read(g.USERS_FILE), config.read(g.AUTHENTICATOR)
        if bool(file) == bool(function):
            raise SetupError(
                f"'{g.AUTHENTICATION.key}' is PASSWORD: set either '{g.USERS_FILE.key}' or "
                f"'{g.AUTHENTICATOR.key}', which say who the users are."
            )
        return cls(users_in(file) if file else users_by(function), audit=audit)

    def user(self, authorization: str, address: str = "") -> str:
        """The user of an Authorization header in a request from ``address``. AccessError if the header is
        missing or wrong."""
        if self.users is None:
            return ""
        scheme, _, credentials = authorization.partition(" ")
        if scheme.lower() == "basic":
            return self._checked(self.users, *_basic(credentials), address)
        if scheme.lower() == "bearer":
            # Tokens are too long to be guessed, so a wrong token is no guess but an expired one.
            name = self.users.with_token(credentials.strip()) or self.passes.user(credentials.strip())
            if name is not None:
                return name
        if not authorization:
            raise AccessError("Say who you are.")
        raise self._refused("")

    def by_password(self, name: str, password: str, address: str = "") -> str:
        """``user`` for protocols that send a name and a password."""
        if self.users is None:
            return ""
        if self.users.with_token(password) == name:
            return name
        return self._checked(self.users, name, password, address)

    def _checked(self, users: Users, name: str, password: str, address: str) -> str:
        """``name`` if its password is right. A remembered password is accepted without a wait."""
        if users.remembers(name, password):
            return name
        wait = self.guesses.begin(name, address)
        if wait > 0:
            raise TooManyGuessesError(wait)
        if not users.with_password(name, password):
            raise self._refused(name)
        self.guesses.right(name, address)
        return name

    def _refused(self, name: str) -> AccessError:
        self.audit.note("refused", name)
        return AccessError("The user or the password is wrong.")


def check_chosen(config: Configuration, address: str) -> None:
    """SetupError if other machines can reach ``address`` and no authentication is set."""
    if config.read(g.AUTHENTICATION) or is_loopback(address):
        return
    raise SetupError(
        f"The gateway would listen on {address}, which other machines reach, without authentication.",
        hint=f"Set '{g.AUTHENTICATION.key}' to PASSWORD, or to NONE to admit everybody.",
    )


@lru_cache(maxsize=64)
def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"


def _basic(encoded: str) -> tuple[str, str]:
    try:
        name, _, password = base64.b64decode(encoded, validate=True).decode("utf-8").partition(":")
    except ValueError:  # no base64, or no text
        raise AccessError("The Authorization header cannot be read.") from None
    return name, password
