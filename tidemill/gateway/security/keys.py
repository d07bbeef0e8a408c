"""The key that the store's documents are sealed with: a file of its own, which is no part of the store.

The file has one key a line, of Fernet's form (AES and HMAC). The first one seals, all of them open: a new key
is put before the old one. A store that somebody copies tells no passwords without the file.
"""

from __future__ import annotations

import os
from functools import partial

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from tidemill.config.seal import Seal
from tidemill.errors import SetupError, StateError

_SEALED = "sealed:"
"""What a sealed text begins with; documents begin otherwise, as JSON does."""


def seal_by(file: str) -> Seal:
    """With the keys in ``file``, which is made where it is not there. SetupError where it cannot be used."""
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
        made = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        pass
    else:
        with os.fdopen(made, "wb") as new:
            new.write(Fernet.generate_key() + b"\n")
            new.flush()
            os.fsync(new.fileno())
    with open(file, encoding="ascii") as kept:
        if os.fstat(kept.fileno()).st_mode & 0o077:
            raise SetupError(f"Other users can read the key file '{file}'.", hint=f"chmod 600 '{file}'")
        return kept.read().split()


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
