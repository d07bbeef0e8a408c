"""The certificate that the endpoints show, read once at the start: faults of its files are told then."""

from __future__ import annotations

import ssl

from tidemill.config import gateway_options as g
from tidemill.config.option import Configuration
from tidemill.errors import SetupError


def server_context(config: Configuration) -> ssl.SSLContext | None:
    """None where the endpoints speak no TLS. SetupError, with its name, for a file that cannot be used."""
    certificate, key = config.read(g.TLS_CERTIFICATE), config.read(g.TLS_KEY)
    if not certificate:
        if key:
            raise SetupError(f"'{g.TLS_KEY.key}' is set, and '{g.TLS_CERTIFICATE.key}' is not.")
        return None
    _check_readable(certificate, "certificate")
    _check_readable(key or certificate, "key")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    asked: list[None] = []

    def no_password() -> str:
        """Without it, the terminal is asked."""
        asked.append(None)
        return ""

    try:
        context.load_cert_chain(certificate, key or None, no_password)
    except (OSError, ValueError) as e:
        if asked:
            raise SetupError(
                f"The private key in '{key or certificate}' needs a password, and nobody can type it.",
                hint="'openssl pkey -in KEY -out NEW' writes a key without a password: protect it.",
            ) from e
        files = f"'{certificate}'" + (f" with the key '{key}'" if key else ", which must hold its key, too,")
        raise SetupError(f"The certificate {files} cannot be used: {e}") from e
    return context


def _check_readable(file: str, what: str) -> None:
    try:
        with open(file, "rb"):
            pass
    except (OSError, ValueError) as e:
        reason = e.strerror if isinstance(e, OSError) else e
        raise SetupError(f"The {what} file '{file}' cannot be read: {reason}") from e
