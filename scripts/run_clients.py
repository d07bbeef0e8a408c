"""Third-party clients against a gateway that this script starts.

python scripts/run_clients.py CLIENTS_FOLDER [NAME...]

CLIENTS_FOLDER holds ``run``, which takes the names of clients and the gateway's addresses (``--rest URL``,
``--hs2 HOST:PORT``).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

_CLIENTS = ("rest", "sqlclient", "jdbc", "dbt", "pyhive", "impyla", "beeline", "hivedriver")
_OPTIONS = ("--port", "0", "--master", "local[2]", "-D", "parallelism.default=1")
_ENDPOINTS = (
    *("-D", "sql-gateway.endpoint.type=rest;hiveserver2"),
    *("-D", "sql-gateway.endpoint.hiveserver2.thrift.port=0"),
)


def main(arguments: list[str]) -> int:
    if not arguments:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    folder, names = Path(arguments[0]), arguments[1:] or list(_CLIENTS)
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "tidemill", "gateway", *_OPTIONS, *_ENDPOINTS]
        command += ["-D", f"tidemill.gateway.directory={home}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as gateway:
            try:
                rest, hive = _address(gateway, "http://"), _address(gateway, "thrift://")
                addresses = ["--rest", rest, "--hs2", hive.removeprefix("thrift://")]
                return subprocess.run([str(folder / "run"), *names, *addresses], check=False).returncode
            finally:
                gateway.terminate()


def _address(gateway: subprocess.Popen[str], scheme: str) -> str:
    """Of the next endpoint that listens, which is one of ``scheme``."""
    assert gateway.stdout is not None
    for line in gateway.stdout:
        found = re.match(rf"Listening on ({scheme}\S+)", line)
        if found:
            return found.group(1)
    raise SystemExit("The gateway did not start.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
