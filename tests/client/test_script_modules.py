"""Modules of user functions may lie beside the scripts that are run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.client.run import RunRequest, new_environment
from tidemill.client.run_watch import RunWatch
from tidemill.config.option import Configuration
from tidemill.errors import ValidationError

MODULE = "def twice(x: int) -> int:\n    return 2 * x\n"
CREATE = "CREATE TEMPORARY SYSTEM FUNCTION twice AS '{}.twice' LANGUAGE PYTHON;"

WATCH = RunWatch.of(Configuration({}))


def test_modules_beside_the_script_and_the_scripts_before_it_are_found(tmp_path: Path) -> None:
    for folder in ("here", "before"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"module_{folder}.py").write_text(MODULE)
    first = tmp_path / "before" / "init.sql"
    first.write_text(CREATE.format("module_before"))
    environment = new_environment(
        str(tmp_path / "here" / "q.sql"), RunRequest(files=(), init=(str(first),)), WATCH
    )
    assert "twice(" in environment.explain_sql("SELECT twice(2)")
    environment.execute_sql("CREATE FUNCTION other AS 'module_here.twice' LANGUAGE PYTHON")
    assert "other(" in environment.explain_sql("SELECT other(2)")


def test_elsewhere_they_are_not(tmp_path: Path) -> None:
    (tmp_path / "module_elsewhere.py").write_text(MODULE)
    environment = new_environment(__file__, RunRequest(files=()), WATCH)
    environment.execute_sql(CREATE.format("module_elsewhere"))
    with pytest.raises(ValidationError, match="No module named 'module_elsewhere'"):
        environment.explain_sql("SELECT twice(2)")
    environment.execute_sql(f"SET 'python.files' = '{tmp_path / 'module_elsewhere.py'}'")
    assert "twice(" in environment.explain_sql("SELECT twice(2)")


def test_python_files_must_exist(tmp_path: Path) -> None:
    environment = new_environment(__file__, RunRequest(files=()), WATCH)
    environment.execute_sql(f"SET 'python.files' = '{tmp_path}/none.zip'")
    environment.execute_sql(CREATE.format("m"))
    with pytest.raises(ValidationError, match=r"names '.*none\.zip', which does not exist"):
        environment.explain_sql("SELECT twice(2)")
