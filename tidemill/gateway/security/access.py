"""Who asks: from what a request says of its user to a name, or a refusal.

Without authentication everybody is the same user, '', and the gateway listens on this machine alone: it does
not start on another address until somebody has chosen.
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
    """The request does not say who asks, or not rightly."""


class TooManyGuessesError(AccessError):
    """What it says is not looked at for so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Too many wrong logins: try again in {math.ceil(seconds)} seconds.")
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Access:
    """``users``: None where nobody has to say who he is."""

    users: Users | None = None
    passes: Passes = field(default_factory=Passes)
    audit: Audit = field(default_factory=Audit)
    guesses: Guesses = field(default_factory=Guesses)

    @classmethod
    def of(cls, config: Configuration, audit: Audit) -> Access:
        """SetupError where what the options name cannot be used."""
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
        """The name in an Authorization header of a request from ``address``; AccessError where there is none,
        or it is wrong."""
        if self.users is None:
            return ""
        scheme, _, said = authorization.partition(" ")
        if scheme.lower() == "basic":
            return self._checked(self.users, *_basic(said), address)
        if scheme.lower() == "bearer":
            # Too long to be guessed: a wrong one is an old one.
            found = self.users.with_token(said.strip()) or self.passes.user(said.strip())
            if found is not None:
                return found
        if not authorization:
            raise AccessError("Say who you are.")
        raise self._refused("")

    def by_password(self, name: str, password: str, address: str = "") -> str:
        """As ``user``, for wires that send a name and a password."""
        if self.users is None:
            return ""
        if self.users.with_token(password) == name:
            return name
        return self._checked(self.users, name, password, address)

    def _checked(self, users: Users, name: str, password: str, address: str) -> str:
        """The name, where its password is right. One that was right before does not wait."""
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
    """SetupError for an address that others reach, where nobody has said who may come."""
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


def _basic(said: str) -> tuple[str, str]:
    try:
        name, _, password = base64.b64decode(said, validate=True).decode("utf-8").partition(":")
    except ValueError:  # no base64, or no text
        raise AccessError("The Authorization header cannot be read.") from None
    return name, password
