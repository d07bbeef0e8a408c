"""Who may use the gateway: a file of users, with hashed passwords or tokens, or a function of the user's own.

A line of the file is ``name:hash`` (see ``password_hash``); ``#`` begins a comment. A user may have several
lines. What is compared is compared in constant time; a password that was right is remembered by its digest as
long as the process lives, as hashing one anew for each request would cost more than the request.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from tidemill.errors import SetupError

Check = Callable[[str, str], bool]
_COST = {"n": 1 << 14, "r": 8, "p": 1}
_PASSWORD, _TOKEN = "scrypt", "sha256"
_SALT_BYTES = 16
_SIZES = {_PASSWORD: [_SALT_BYTES, 64], _TOKEN: [32]}
"""Of the parts of a hash, in bytes."""
_REMEMBERED = 10_000
_MAKES_ONE = "'tidemill user NAME' and 'tidemill user --token NAME' make one."


def password_hash(password: str) -> str:
    """What a user's line holds for a password."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return f"{_PASSWORD}${_text(salt)}${_text(_scrypt(password, salt))}"


def token_hash(token: str) -> str:
    """What a user's line holds for a bearer token: long and random, it needs no salt."""
    return f"{_TOKEN}${_text(hashlib.sha256(token.encode()).digest())}"


@dataclass(slots=True)
class Users:
    """``password``: whether a user's password is right; ``tokens``: users by the hash of a token."""

    password: Check
    tokens: dict[str, str] = field(default_factory=dict)
    _key: bytes = field(default_factory=lambda: os.urandom(32))
    _right: dict[bytes, None] = field(default_factory=dict)

    def remembers(self, name: str, password: str) -> bool:
        """Whether the password was right before."""
        return self._digest(name, password) in self._right

    def _digest(self, name: str, password: str) -> bytes:
        return hmac.digest(self._key, f"{name}\0{password}".encode(), "sha256")

    def with_password(self, name: str, password: str) -> bool:
        said = self._digest(name, password)
        if said in self._right:
            return True
        if not self.password(name, password):
            return False
        while len(self._right) >= _REMEMBERED:
            self._right.pop(next(iter(self._right)))
        self._right[said] = None
        return True

    def with_token(self, token: str) -> str | None:
        """The user whose token it is."""
        return self.tokens.get(token_hash(token))


def users_in(file: str) -> Users:
    """SetupError where the file cannot be read, a line (by its number) is none, or nobody is in it."""
    try:
        lines = Path(file).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as e:
        raise SetupError(f"The users file '{file}' cannot be read: {e}") from e
    passwords: dict[str, list[str]] = {}
    tokens: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, kept = line.strip().partition(":")
        if not name or not _is_hash(kept):
            raise SetupError(f"Line {number} of '{file}' is not of the form name:hash.", hint=_MAKES_ONE)
        if not kept.startswith(_TOKEN):
            passwords.setdefault(name, []).append(kept)
        elif tokens.setdefault(kept, name) != name:
            raise SetupError(f"Line {number} of '{file}' gives '{name}' the token of '{tokens[kept]}'.")
    if not passwords and not tokens:
        raise SetupError(f"The users file '{file}' has no users.", hint=_MAKES_ONE)
    nobody = [password_hash(secrets.token_urlsafe())]

    def check(name: str, password: str) -> bool:
        """As long for a user who does not exist."""
        matches = [_matches(password, kept) for kept in passwords.get(name, nobody)]
        return name in passwords and any(matches)

    return Users(check, tokens)


def users_by(function: str) -> Users:
    """``module:function``, which is given a name and a password. SetupError where there is none."""
    module, _, name = function.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as e:
        raise SetupError(f"'{function}' does not name a function as 'module:function': {e}") from e
    return Users(lambda user, password: bool(found(user, password)))


def _is_hash(kept: str) -> bool:
    """Whether it is what ``password_hash`` or ``token_hash`` gives: nothing that is said matches another."""
    kind, *parts = kept.split("$")
    try:
        sizes = [len(base64.b64decode(part, validate=True)) for part in parts]
    except ValueError:
        return False
    return sizes == _SIZES.get(kind)


def _matches(password: str, kept: str) -> bool:
    _, salt, digest = kept.split("$")
    return hmac.compare_digest(_scrypt(password, base64.b64decode(salt)), base64.b64decode(digest))


def _scrypt(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=_COST["n"], r=_COST["r"], p=_COST["p"])


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
