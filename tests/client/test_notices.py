"""What a script's user is told of how a query ran that was to run otherwise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidemill.client.main import main

SCRIPT = """
SET 'execution.runtime-mode' = 'batch';
SET 'execution.batch-shuffle-mode' = 'ALL_EXCHANGES_PIPELINED';
CREATE TABLE t (k BIGINT) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{folder}/t');
SELECT k FROM t;
SELECT a.k FROM t AS a JOIN t AS b ON a.k = b.k ORDER BY a.k;
"""


def test_why_exchanges_are_blocking(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not of a query that exchanges nothing; the history has it, too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "0.csv").write_text("3\n1\n2\n")
    script = tmp_path / "script.sql"
    script.write_text(SCRIPT.format(folder=tmp_path))
    assert main(["run", str(script)]) == 0
    shown = capsys.readouterr()
    assert re.findall(r"\| +(\d) \|", shown.out)[-3:] == ["1", "2", "3"]
    told = [line for line in shown.err.splitlines() if "locking" in line]
    assert len(told) == 1
    assert re.fullmatch(r"Warning: Exchanges of select are blocking: .+\.", told[0])
    assert main(["history", "--last", "1"]) == 0
    job = capsys.readouterr().out.split()[0]
    assert main(["history", job]) == 0
    assert told[0].removeprefix("Warning: ") in capsys.readouterr().out.splitlines()
