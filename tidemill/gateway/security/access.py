"""Who asks: from what a request says of its user to a name, or a refusal.

Without authentication everybody is the same user, '', and the gateway listens on this machine alone: it does
not start on another address until somebody has chosen.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from dataclasses import dataclass, field
from functools import lru_cache

from tidemill.config import gateway_options as g
from tidemill.config.option import Configuration
from tidemill.errors import SetupError
from tidemill.gateway.api import GatewayError
from tidemill.gateway.security.audit import Audit
from tidemill.gateway.security.passes import Passes
from tidemill.gateway.security.users import Users, users_by, users_in


class AccessError(GatewayError):
    """The request does not say who asks, or not rightly."""


@dataclass(frozen=True, slots=True)
class Access:
    """``users``: None where nobody has to say who he is."""

    users: Users | None = None
    passes: Passes = field(default_factory=Passes)
    audit: Audit = field(default_factory=Audit)

    @classmethod
    def of(cls, config: Configuration, audit: Audit) -> Access:
        """SetupError where what the options name cannot be used."""
        kind = config.read(g.AUTHENTICATION).upper()
        if kind != "PASSWORD":
            return cls(audit=audit)
        file, function = config.read(g.USERS_FILE), config.read(g.AUTHENTICATOR)
        if bool(file) == bool(function):
            raise SetupError(
                f"'{g.AUTHENTICATION.key}' is PASSWORD: say who the users are, by '{g.USERS_FILE.key}' or "
                f"'{g.AUTHENTICATOR.key}'."
            )
        return cls(users_in(file) if file else users_by(function), audit=audit)

    def user(self, authorization: str) -> str:
        """The name in an Authorization header; AccessError where there is none, or it is wrong."""
        if self.users is None:
            return ""
        scheme, _, said = authorization.partition(" ")
        name = ""
        if scheme.lower() == "basic":
            name, password = _basic(said)
            if self.users.with_password(name, password):
                return name
        elif scheme.lower() == "bearer":
            found = self.users.with_token(said.strip()) or self.passes.user(said.strip())
            if found is not None:
                return found
        if not authorization:
            raise AccessError("Say who you are.")
        self.audit.note("refused", name)
        raise AccessError("The user or the password is wrong.")

    def by_password(self, name: str, password: str) -> str:
        """As ``user``, for wires that send a name and a password."""
        if self.users is None:
            return ""
        if self.users.with_password(name, password) or self.users.with_token(password) == name:
            return name
        self.audit.note("refused", name)
        raise AccessError("The user or the password is wrong.")


def check_chosen(config: Configuration, address: str) -> None:
    """SetupError for an address that others reach, where nobody has said who may come."""
    if config.read(g.AUTHENTICATION) or is_loopback(address):
        return
    raise SetupError(
        f"The gateway would listen on {address}, where others reach it, and asks nobody who he is.",
        hint=f"Set '{g.AUTHENTICATION.key}' to PASSWORD, or to NONE if all who reach it may use it.",
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
    except (binascii.Error, UnicodeDecodeError):
        raise AccessError("The Authorization header cannot be read.") from None
    return name, password
