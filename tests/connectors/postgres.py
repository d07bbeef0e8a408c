"""A PostgreSQL server of the tests' own: temporary data directory, a free port on the loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    programs: Path
    data: Path
    port: int

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres?user=postgres"

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres", autocommit=True
        )

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._run("pg_ctl", "-D", str(self.data), "-w", "-o", options, "-l", str(self.data / "log"), "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.data), "-w", "-m", "immediate", "stop")

    def initialise(self) -> None:
        self._run("initdb", "-D", str(self.data), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")

    def _run(self, program: str, *args: str) -> None:
        """The server refuses to run as root."""
        user = "postgres" if os.geteuid() == 0 else None
        subprocess.run(
            [str(self.programs / program), *args],
            check=True,
            user=user,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
        )


def programs() -> Path | None:
    """Where the server's programs are; None when it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


@contextmanager
def server() -> Iterator[Server]:
    directory = programs()
    assert directory is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    root = Path(tempfile.mkdtemp(prefix="tidemill-postgres-", dir="/tmp"))
    if os.geteuid() == 0:
        shutil.chown(root, "postgres")
    made = Server(programs=directory, data=root / "data", port=port)
    made.initialise()
    made.start()
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(root, ignore_errors=True)
