"""``tidemill user``: a line for the file of users."""

from __future__ import annotations

import argparse
import getpass
import secrets
import sys

from tidemill.errors import ValidationError
from tidemill.gateway.security.users import password_hash, token_hash


def command(parsed: argparse.Namespace) -> int:
    """Writes the line to standard output; the password is asked for, a new token goes to standard error."""
    name = parsed.name
    if not name or ":" in name or name.startswith("#"):
        raise ValidationError("A user's name is not empty, has no colon, and does not begin with '#'.")
    if parsed.token:
        token = secrets.token_urlsafe(32)
        sys.stderr.write(f"The token, which is shown this once: {token}\n")
        line = token_hash(token)
    else:
        line = password_hash(_password())
    sys.stdout.write(f"{name}:{line}\n")
    return 0


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    password = getpass.getpass("Password: ")
    if password != getpass.getpass("Again: "):
        raise ValidationError("The two are not the same.")
    return password
