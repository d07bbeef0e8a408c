"""The command's first answers: fast, because nothing heavy is loaded for them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tidemill.client.main import main

pytestmark = pytest.mark.usefixtures("processes")

HEAVY = ("pyspark", "pandas", "numpy", "pyarrow", "sqlglot", "prompt_toolkit", "rich")


def _python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("code", ["import tidemill", "from tidemill.client.main import main"])
def test_nothing_heavy_is_imported(code: str) -> None:
    run = _python(f"{code}\nimport sys\nprint([m for m in {HEAVY!r} if m in sys.modules])")
    assert run.stdout == "[]\n"


ENVIRONMENT = "from tidemill import TableEnvironment\nenv = TableEnvironment.create()"
LOADED = "\nimport sys\nprint([m for m in sys.modules if m.startswith({!r})])"


@pytest.mark.parametrize(
    ("code", "needless"),
    [
        (ENVIRONMENT, ("pyspark", "pandas", "tidemill.plan", "tidemill.physical", "tidemill.operators")),
        (
            f"{ENVIRONMENT}\nenv.execute_sql('SELECT 1')",
            ("pyspark", "tidemill.physical", "tidemill.runtime.job"),
        ),
        ("from tidemill.runtime.spark.session import start_ahead", ("numpy", "pyarrow", "sqlglot")),
    ],
)
def test_a_start_imports_only_what_it_needs(code: str, needless: tuple[str, ...]) -> None:
    run = _python(code + LOADED.format(needless))
    assert (run.stdout, run.stderr) == ("[]\n", "")


def test_all_public_names_are_there() -> None:
    run = _python("import tidemill\nprint([n for n in tidemill.__all__ if not getattr(tidemill, n)])")
    assert (run.stdout, run.stderr) == ("[]\n", "")


def test_python_m_tidemill() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tidemill", "--version"], capture_output=True, text=True, check=False
    )
    assert run.stdout.startswith("tidemill 0.")


def test_a_wrong_option_starts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["run", "--formt", "json", "x.sql"])
    assert caught.value.code == 2
    assert "unrecognized arguments: --formt" in capsys.readouterr().err
