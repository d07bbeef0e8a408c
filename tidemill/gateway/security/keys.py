"""The keys that encrypt the store's documents, in a file outside of the store.

The file has one Fernet key (AES and HMAC) per line. The first key encrypts, all keys decrypt: to change the
key, put a new line before the others. A copied store reveals no passwords without the file.
"""

from __future__ import annotations

import os
from functools import partial

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from tidemill.config.seal import Seal
from tidemill.errors import SetupError, StateError

_SEALED = "sealed:"
"""Prefix of an encrypted text; JSON documents never begin with it."""


def seal_by(file: str) -> Seal:
    """A seal with the keys in ``file``, which is created if it is missing. SetupError if it is unusable."""
    try:
        keys = _keys(file)
        fernet = MultiFernet([Fernet(key) for key in keys])
    except OSError as e:
        raise SetupError(f"The key file '{file}' cannot be used: {e.strerror or e}") from e
    except ValueError as e:
        raise SetupError(
            f"The key file '{file}' contains no keys.",
            hint="Each line is 32 random bytes in URL-safe base64. If there is no file, a new key is made.",
        ) from e
    return Seal(partial(_close, fernet), partial(_open, fernet, file))


def _keys(file: str) -> list[str]:
    try:
        descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        pass
    else:
        with os.fdopen(descriptor, "wb") as new_file:
            new_file.write(Fernet.generate_key() + b"\n")
            new_file.flush()
            os.fsync(new_file.fileno())
    with open(file, encoding="ascii") as key_file:
        if os.fstat(key_file.fileno()).st_mode & 0o077:
            raise SetupError(f"Other users can read the key file '{file}'.", hint=f"chmod 600 '{file}'")
        return key_file.read().split()


def _close(fernet: MultiFernet, text: str) -> str:
    return _SEALED + fernet.encrypt(text.encode()).decode("ascii")


def _open(fernet: MultiFernet, file: str, text: str) -> str:
    if not text.startswith(_SEALED):
        return text
    try:
        return fernet.decrypt(text.removeprefix(_SEALED)).decode()
    except InvalidToken:
        raise StateError(
            f"The gateway's store was encrypted with a key that is not in '{file}'.",
            hint="Restore the key file. Without its key the store is lost: name another store.",
        ) from None
