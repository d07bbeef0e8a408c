"""The options that a command line gives: its file of them, its ``-D``, and what has a flag of its own."""

from __future__ import annotations

import argparse
from pathlib import Path

from tidemill.config.properties import read_properties

_ARCHIVES = (".tar.gz", ".tgz", ".tar", ".zip", ".jar")
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
