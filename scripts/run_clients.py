"""Third-party clients against a gateway that this script starts.

python scripts/run_clients.py CLIENTS_FOLDER [NAME...]

CLIENTS_FOLDER holds ``run``, which takes the names of clients and the gateway's address (``--rest URL``).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

_CLIENTS = ("rest", "sqlclient", "jdbc", "dbt")
_OPTIONS = ("--port", "0", "--master", "local[2]", "-D", "parallelism.default=1")


def main(arguments: list[str]) -> int:
    if not arguments:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    folder, names = Path(arguments[0]), arguments[1:] or list(_CLIENTS)
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "tidemill", "gateway", *_OPTIONS]
        command += ["-D", f"tidemill.gateway.directory={home}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as gateway:
            try:
                return subprocess.run(
                    [str(folder / "run"), *names, "--rest", _address(gateway)], check=False
                ).returncode
            finally:
                gateway.terminate()


def _address(gateway: subprocess.Popen[str]) -> str:
    assert gateway.stdout is not None
    for line in gateway.stdout:
        found = re.match(r"Listening on (http://\S+)", line)
        if found:
            return found.group(1)
    raise SystemExit("The gateway did not start.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
