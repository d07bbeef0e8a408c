"""A MariaDB server of the tests' own: temporary data directory, a free port on the loopback."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql

USER, PASSWORD = "reader", "secret"
_SYSTEM = ("mysql", "sys", "information_schema", "performance_schema")


@dataclass(slots=True, kw_only=True)
class Server:
    root: Path
    port: int
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def connect(self, user: str = "root", password: str = "") -> pymysql.Connection[Any]:
        """A statement that waits for more than a minute is an error."""
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user=user,
            password=password,
            database="d",
            autocommit=True,
            charset="utf8mb4",
            init_command="SET lock_wait_timeout = 60",
        )

    def ask(self, *statements: str) -> list[Any]:
        """The rows of the last of ``statements``, all over one connection."""
        found: list[Any] = []
        with self.connect() as open, open.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                found = list(cursor.fetchall())
        return found

    def clear(self) -> None:
        """An empty database again."""
        self.ask("DROP DATABASE d", "CREATE DATABASE d")

    def start(self) -> None:
        command = [
            str(program()),
            "--no-defaults",
            f"--datadir={self.root}/data",
            f"--socket={self.root}/socket",
        ]
        command += [f"--tmpdir={self.root}"]
        command += [f"--port={self.port}", "--bind-address=127.0.0.1", "--log-bin=log", "--server-id=7"]
        command += ["--binlog-format=ROW", "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0"]
        command += ["--character-set-server=utf8mb4", "--innodb-buffer-pool-size=32M"]
        with (self.root / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, **unprivileged())
        deadline = time.monotonic() + 60
        while True:
            try:
                pymysql.connect(host="127.0.0.1", port=self.port, user="root", password="").close()
                return
            except pymysql.Error:
                log_text = (self.root / "log").read_text(errors="replace")
                assert self.process.poll() is None, log_text
                assert time.monotonic() < deadline, log_text
                time.sleep(0.1)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)
            self.process = None


def unprivileged() -> dict[str, Any]:
    """As whom the server runs: it refuses to be root."""
    if os.geteuid() != 0:
        return {}
    account = pwd.getpwnam("mysql")
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def program() -> str | None:
    return shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")


@contextmanager
def server() -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    root = Path(tempfile.mkdtemp(prefix="tidemill-mariadb-", dir="/tmp"))
    if os.geteuid() == 0:
        os.chown(root, pwd.getpwnam("mysql").pw_uid, pwd.getpwnam("mysql").pw_gid)
    made = Server(root=root, port=port)
    try:
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={root}/data", f"--tmpdir={root}"]
        install += ["--skip-test-db", "--auth-root-authentication-method=normal"]
        done = subprocess.run(install, capture_output=True, timeout=120, check=False, **unprivileged())
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
        made.start()
        root_login = pymysql.connect(host="127.0.0.1", port=port, user="root", password="")
        with root_login as open, open.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
            cursor.execute(f"CREATE USER {USER} IDENTIFIED BY '{PASSWORD}'")
            rights = "SELECT, LOCK TABLES, REPLICATION SLAVE, BINLOG MONITOR"
            cursor.execute(f"GRANT {rights} ON *.* TO {USER}")
        yield made
    finally:
        made.stop()
        shutil.rmtree(root, ignore_errors=True)


def cdc_options(server: Server, **more: str) -> dict[str, str]:
    """``a__b`` stands for the option ``a-b``, ``a_b`` for ``a.b``."""
    plain = {
        "connector": "mysql-cdc",
        "hostname": "127.0.0.1",
        "port": str(server.port),
        "username": USER,
        "password": PASSWORD,
        "database-name": "d",
        "table-name": "t",
    }
    return {**plain, **{key.replace("__", "-").replace("_", "."): value for key, value in more.items()}}
