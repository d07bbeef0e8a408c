"""The options that a command line gives: its file of them, its ``-D``, and what has a flag of its own."""

from __future__ import annotations

import argparse
from pathlib import Path

from tidemill.config.properties import read_properties
from tidemill.errors import ValidationError

_ARCHIVES = (".tar.gz", ".tgz", ".tar", ".zip", ".jar")
_PORT = 8083
_UNPACKED = "environment"
"""Where workers find an archive's contents, below the folder they run in."""


def command_options(parsed: argparse.Namespace) -> dict[str, str]:
    """Flags go before ``-D``, and ``-D`` before the file. ConnectorError where the file cannot be read."""
    options = read_properties(Path(parsed.conf_file)) if parsed.conf_file else {}
    options |= dict(parsed.options)
    if parsed.py_env:
        options |= python_environment(parsed.py_env, options.get("spark.archives", ""))
    if parsed.master:
        options["spark.master"] = parsed.master
    if getattr(parsed, "port", None) is not None:
        options["sql-gateway.endpoint.rest.port"] = str(parsed.port)
    return options


def gateway_of(parsed: argparse.Namespace) -> str:
    """The URL of the gateway that ``tidemill sql`` is to speak to; '' where it has a Spark of its own."""
    if parsed.mode != "gateway":
        if parsed.host or parsed.at_port is not None:
            raise ValidationError("-h and -p are for 'tidemill sql gateway'.")
        return str(parsed.gateway)
    if parsed.gateway:
        return str(parsed.gateway)
    host, port = parsed.host or "127.0.0.1", _PORT if parsed.at_port is None else parsed.at_port
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def python_environment(given: str, archives: str) -> dict[str, str]:
    """Spark's options for the workers' Python: an archive that is shipped to them, beside those there are, or
    a place on them, an environment's folder or the program itself."""
    if given.partition("#")[0].lower().endswith(_ARCHIVES):
        archive, _, folder = given.partition("#")
        folder = folder or _UNPACKED
        shipped = ",".join(filter(None, (archives, f"{archive}#{folder}")))
        return {"spark.archives": shipped, "spark.pyspark.python": f"./{folder}/bin/python"}
    is_program = given.rstrip("/").rpartition("/")[2].startswith(("python", "pypy"))
    return {"spark.pyspark.python": given if is_program else f"{given.rstrip('/')}/bin/python"}
