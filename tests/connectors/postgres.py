"""A PostgreSQL server of the tests' own: temporary data directory, a free port on the loopback."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
        """A statement that waits for more than a minute is an error."""
        place = f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"
        return psycopg.connect(place, autocommit=True, options="-c statement_timeout=60000")

    def clear(self) -> None:
        """An empty database again."""
        with self.connect() as open:
            open.execute("DROP SCHEMA public CASCADE")
            open.execute("CREATE SCHEMA public")

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        options += " -c wal_level=logical -c max_replication_slots=50"
        self._run("pg_ctl", "-D", str(self.data), "-w", "-o", options, "-l", str(self.data / "log"), "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.data), "-w", "-m", "immediate", "stop")

    def initialise(self) -> None:
        self._run("initdb", "-D", str(self.data), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")

    def _run(self, program: str, *args: str) -> None:
        """Output goes to a file: the server inherits it, a pipe would never end."""
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [str(self.programs / program), *args],
                cwd="/",
                stdout=output,
                stderr=output,
                timeout=60,
                check=False,
                **unprivileged(),
            )
            output.seek(0)
            assert done.returncode == 0, f"{program}: {output.read().decode()}"


def unprivileged() -> dict[str, Any]:
    """As whom the server runs: it refuses to be root."""
    if os.geteuid() != 0:
        return {}
    return {"user": account().pw_uid, "group": account().pw_gid, "extra_groups": []}


def account() -> pwd.struct_passwd:
    """Debian's package brings the user postgres; other installations may not."""
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def programs() -> Path | None:
    """Where the server's programs are; None when it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


def _version(initdb: Path) -> float:
    name = initdb.parts[-3]
    return float(name) if name.replace(".", "", 1).isdigit() else 0.0


@contextmanager
def server() -> Iterator[Server]:
    directory = programs()
    assert directory is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    root = Path(tempfile.mkdtemp(prefix="tidemill-postgres-", dir="/tmp"))
    if os.geteuid() == 0:
        os.chown(root, account().pw_uid, account().pw_gid)
    made = Server(programs=directory, data=root / "data", port=port)
    try:
        made.initialise()
        made.start()
        yield made
    finally:
        if (made.data / "postmaster.pid").exists():
            made.stop()
        shutil.rmtree(root, ignore_errors=True)
