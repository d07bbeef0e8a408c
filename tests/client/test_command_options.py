"""What the command line makes of --master, --py-env, --conf-file and -D."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.client.command_options import command_options, gateway_of, python_environment
from tidemill.client.main import _parser
from tidemill.errors import ValidationError


def options(*arguments: str) -> dict[str, str]:
    return command_options(_parser().parse_args(["run", "x.sql", *arguments]))


def test_flags_go_before_options_and_options_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "cluster.conf"
    file.write_text("spark.master yarn\nspark.executor.memory 2g\nspark.executor.cores 4\n")
    given = ("--conf-file", str(file), "-D", "spark.executor.memory=3g", "-D", "spark.master=local")
    assert options(*given) == {
        "spark.master": "local",
        "spark.executor.memory": "3g",
        "spark.executor.cores": "4",
    }
    assert options(*given, "--master", "k8s://https://h")["spark.master"] == "k8s://https://h"


@pytest.mark.parametrize(
    ("given", "archives", "python"),
    [
        ("env.tar.gz", "env.tar.gz#environment", "./environment/bin/python"),
        ("s3://b/e.zip#venv", "s3://b/e.zip#venv", "./venv/bin/python"),
        ("/opt/env", "", "/opt/env/bin/python"),
        ("/opt/env/", "", "/opt/env/bin/python"),
        ("/usr/bin/python3.11", "", "/usr/bin/python3.11"),
        ("python3", "", "python3"),
    ],
)
def test_the_workers_python(given: str, archives: str, python: str) -> None:
    made = python_environment(given, "")
    assert made.get("spark.archives", "") == archives
    assert made["spark.pyspark.python"] == python


def test_other_archives_stay() -> None:
    assert python_environment("e.tgz", "data.zip")["spark.archives"] == "data.zip,e.tgz#environment"


@pytest.mark.parametrize(
    ("arguments", "url"),
    [
        ([], ""),
        (["--gateway", "http://a:1"], "http://a:1"),
        (["gateway"], "http://127.0.0.1:8083"),
        (["gateway", "-h", "there", "-p", "9"], "http://there:9"),
        (["gateway", "-h", "::1"], "http://[::1]:8083"),
        (["gateway", "-e", "http://a:1"], "http://a:1"),
    ],
)
def test_where_the_gateway_is(arguments: list[str], url: str) -> None:
    assert gateway_of(_parser().parse_args(["sql", *arguments])) == url


def test_h_alone_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _parser().parse_args(["sql", "-h"])
    assert "usage: tidemill sql" in capsys.readouterr().out
    with pytest.raises(ValidationError, match="'tidemill sql gateway'"):
        gateway_of(_parser().parse_args(["sql", "-h", "there"]))
