"""``tidemill run`` for people: results, errors with their place, exit statuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidemill.client import main
from tidemill.client.error_text import error_text
from tidemill.errors import Position, ValidationError


def test_the_first_failure_ends_the_run(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "a.sql"
    script.write_text("SHOW CATALOGS;\nSELECT nope\nFROM (VALUES (1)) AS t(nop);\nSHOW DATABASES;\n")
    assert main.main(["run", str(script), str(script)]) == 1
    shown = capsys.readouterr()
    assert shown.out.count("default_catalog") == 1
    assert "default_database" not in shown.out
    assert shown.err == (
        "[VALIDATION] Column 'nope' not found in any table\n"
        "  at line 2, column 8:\n"
        "    2 | SELECT nope\n"
        "      |        ^\n"
        "Did you mean 'nop'?\n"
    )


def test_every_session_begins_with_the_init_scripts(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "table.sql").write_text(
        "CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'number-of-rows' = '${ROWS}');"
    )
    (tmp_path / "view.sql").write_text("CREATE VIEW v AS SELECT COUNT(*) AS n FROM t;")
    (tmp_path / "a.sql").write_text("SET 'sql-client.execution.result-mode' = 'TABLE';\nSELECT n FROM v;")
    (tmp_path / "b.sql").write_text("DROP VIEW v;")
    names = [str(tmp_path / n) for n in ("table.sql", "view.sql", "a.sql", "b.sql")]
    arguments = ["run", "-i", names[0], "-i", names[1], names[2], names[3], names[2]]
    assert main.main([*arguments, "-V", "ROWS=7"]) == 0
    assert capsys.readouterr().out.count("7 |") == 2
    assert main.main(arguments) == 1
    assert "Could not parse value '${ROWS}'" in capsys.readouterr().err
    assert main.main(["run", "-i", names[1], names[2]]) == 1
    assert f"{names[1]}: Object 't' not found" in capsys.readouterr().err


def test_long_texts_are_not_framed(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "a.sql"
    script.write_text("CREATE TABLE t (a INT) WITH ('connector'='blackhole'); SHOW CREATE TABLE t;")
    assert main.main(["run", str(script)]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "OK",
        "CREATE TABLE `default_catalog`.`default_database`.`t` (",
        "  `a` INT",
    ]


def test_the_caret_stands_below_the_place_also_after_tabs() -> None:
    error = ValidationError("wrong", position=Position(1, 4), expected=("a", "b"), hint="Do this.")
    assert error_text(error, "\tx y") == (
        "[VALIDATION] wrong\n  at line 1, column 4:\n    1 | \tx y\n      | \t  ^\n"
        "Do this.\nExpected one of: a, b\n"
    )
    words = tuple("abcdefghijkl")
    assert str(ValidationError("wrong", expected=words, hint="Do this.")) == (
        "wrong\nDo this.\nExpected one of: a, b, c, d, e, f, or 6 others"
    )
    assert "line 9" in error_text(ValidationError("wrong", position=Position(9, 1)), "one line")


def test_wrong_command_lines_are_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["run"], ["run", "x.sql", "-D", "novalue"], ["fly"]):
        with pytest.raises(SystemExit) as caught:
            main.main(arguments)
        assert caught.value.code == 2


def test_a_missing_script_is_an_error_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["run", "/no/such/file.sql"]) == 1
    assert capsys.readouterr().err == "Cannot read script '/no/such/file.sql': No such file or directory\n"


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main.main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("tidemill 0.")
