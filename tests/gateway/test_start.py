"""A gateway that is started with options that no session could be opened with."""

from __future__ import annotations

import socket
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from tidemill.config.option import Configuration
from tidemill.errors import SetupError, ValidationError
from tidemill.gateway.proposed import renamed
from tidemill.gateway.start import GatewayProcess, command

pytestmark = pytest.mark.usefixtures("processes")

_PLACES = ("users-file", "audit-file", "directory", "store", "tls.certificate-file", "tls.private-file")


@pytest.mark.parametrize(
    ("key", "value"),
    [("tidemill.gateway.dir", "/"), ("sql-gateway.session.idle-timeout", "often")]
    + [(f"tidemill.gateway.{key}", "a\0b") for key in _PLACES],
)
def test_it_does_not_start(capsys: pytest.CaptureFixture[str], key: str, value: str) -> None:
    mistyped = "sql-gateway.endpoint.rest.prt"
    with pytest.raises(ValidationError, match=key):
        command(Namespace(options={mistyped: "8085", key: value}))
    assert f"Warning: There is no option '{mistyped}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("endpoint", "key", "value", "told"),
    [
        ("both", "tidemill.gateway.tls.certificate-file", "/nowhere", "certificate file '/nowhere' cannot"),
        ("both", "tidemill.gateway.users-file", "/nowhere", "users file '/nowhere' cannot be read"),
        ("rest", "sql-gateway.endpoint.rest.bind-address", "0.0.0.0", "without authentication"),
        ("rest", "sql-gateway.endpoint.rest.port", "", "REST endpoint cannot listen on 127.0.0.1"),
        ("hiveserver2", "sql-gateway.endpoint.hiveserver2.thrift.host", "0.0.0.0", "without authentication"),
        ("hiveserver2", "sql-gateway.endpoint.hiveserver2.thrift.port", "", "HiveServer2 endpoint cannot"),
    ],
)
def test_what_an_endpoint_could_not_start_with_is_told_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str, key: str, value: str, told: str
) -> None:
    def started(config: Configuration) -> None:
        raise AssertionError("Spark starts")

    monkeypatch.setattr("tidemill.gateway.start.spark_application", started)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for kind in ("rest", "hiveserver2") if endpoint == "both" else (endpoint,):
            options = {
                "tidemill.gateway.directory": f"{tmp_path}/{kind}",
                "sql-gateway.endpoint.type": kind,
                "sql-gateway.endpoint.rest.port": "0",
                "sql-gateway.endpoint.hiveserver2.thrift.port": "0",
                "tidemill.gateway.authentication": "PASSWORD" if "users" in key else "",
                "tidemill.gateway.allowed-paths": "*",
                "tidemill.gateway.allowed-connectors": "*",
                key: value or str(taken.getsockname()[1]),
            }
            with pytest.raises(SetupError, match=told):
                command(Namespace(options={k: v for k, v in options.items() if v}))


@pytest.mark.parametrize("below", ["", "/below"])
def test_its_directory_is_none(tmp_path: Path, below: str) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(SetupError, match=rf"directory '{file}{below}' cannot be used: .*: '{file}"):
        GatewayProcess(Configuration({"tidemill.gateway.directory": f"{file}{below}"}))


def test_names_of_the_proposal() -> None:
    assert renamed(
        {
            "endpoint.protocol": "rest",
            "endpoint.rest.address": "::1",
            "endpoint.rest.port": "1",
            "endpoint.hiveserver2.address": "a",
            "endpoint.hiveserver2.port": "2",
            "endpoint.mine.port": "3",
            "sql-gateway.session.idle.timeout": "1 min",
            "sql-gateway.session.check.interval": "2 min",
            "sql-gateway.worker.keepalive.time": "3 min",
            "parallelism.default": "4",
        }
    ) == {
        "sql-gateway.endpoint.type": "rest",
        "sql-gateway.endpoint.rest.bind-address": "::1",
        "sql-gateway.endpoint.rest.port": "1",
        "sql-gateway.endpoint.hiveserver2.thrift.host": "a",
        "sql-gateway.endpoint.hiveserver2.thrift.port": "2",
        "sql-gateway.endpoint.mine.port": "3",
        "sql-gateway.session.idle-timeout": "1 min",
        "sql-gateway.session.check-interval": "2 min",
        "sql-gateway.worker.keepalive-time": "3 min",
        "parallelism.default": "4",
    }
    with pytest.raises(ValidationError, match="given twice"):
        renamed({"endpoint.rest.port": "1", "sql-gateway.endpoint.rest.port": "2"})


def test_a_statement_that_does_not_stop_keeps_no_process() -> None:
    program = """
import threading
from tidemill.gateway.service.workers import Workers
from tidemill.gateway.start import end_threads
workers, begun = Workers(most=2), threading.Event()
workers.submit(lambda: begun.set() or threading.Event().wait())
assert begun.wait(60)
workers.close()
end_threads(0.1)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, text=True)
    assert (ended.returncode, "did not stop" in ended.stderr) == (0, True)
