"""``tidemill user``: prints a line for the users' file."""

from __future__ import annotations

import argparse
import getpass
import secrets
import sys

from tidemill.errors import ValidationError
from tidemill.gateway.security.users import password_hash, token_hash


def command(parsed: argparse.Namespace) -> int:
    """Writes the line to standard output. Asks for the password; writes a new token to standard error."""
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
        raise ValidationError("The two passwords are not the same.")
    return password
