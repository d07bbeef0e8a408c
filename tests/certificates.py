"""Certificates for servers of tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def certificate(folder: Path) -> str:
    """A file with a key, and the certificate for 127.0.0.1 that it has signed itself; ``key.pem`` beside it
    is the key alone. Skips where openssl is missing."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    key, made = folder / "key.pem", folder / "server.pem"
    names = ["-subj", "/CN=server", "-addext", "subjectAltName=IP:127.0.0.1"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    files = ["-keyout", str(key), "-out", str(made)]
    subprocess.run([program, "req", "-x509", *kind, *names, *files], check=True, capture_output=True)
    made.write_text(key.read_text() + made.read_text())
    return str(made)
