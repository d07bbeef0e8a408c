"""``tidemill gateway``: the service, its endpoints, and the one Spark that all sessions share."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tidemill.config import gateway_options as g
from tidemill.config.option import Configuration
from tidemill.files.private import make_private
from tidemill.gateway.endpoints.api import configured
from tidemill.gateway.service.service import Gateway
from tidemill.gateway.service.statements import new_statements
from tidemill.runtime.spark.session import spark_application
from tidemill.session.jobs import Jobs

_RESULTS = "results"


def command(parsed: argparse.Namespace) -> int:
    """Runs until it is told to end (SIGINT, SIGTERM)."""
    config = Configuration(parsed.options)
    gateway = new_gateway(config)
    endpoints = configured(gateway, config)
    spark_application(config)  # a session's first statement must not wait for Spark, nor choose its master
    gateway.start()
    try:
        for endpoint in endpoints:
            endpoint.start()
            sys.stdout.write(f"Listening on {endpoint.address}\n")
        sys.stdout.flush()
        _until_told()
    finally:
        for endpoint in endpoints:
            endpoint.stop()
        gateway.close()
    return 0


def new_gateway(config: Configuration) -> Gateway:
    """A service whose sessions share their jobs, and keep what does not fit into memory in its directory."""
    results = os.path.join(directory(config), _RESULTS)
    os.makedirs(results, exist_ok=True)
    make_private(results)
    return Gateway(config=config, new_session=partial(new_statements, config, jobs=Jobs(), folder=results))


def directory(config: Mapping[str, str]) -> str:
    """Where the gateway keeps what is its own."""
    given = Configuration(config).read(g.DIRECTORY)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return given or os.path.join(state, "tidemill", "gateway")


def _until_told() -> None:
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told.set())
    told.wait()
