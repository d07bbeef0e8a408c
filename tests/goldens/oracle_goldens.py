"""Recorded answers of Flink 2.3: straight, and cut into epochs with a stop and a resumption between them.

Runs in epochs are compared by their final rows: where epochs end decides which intermediate
changes are seen, never what they add up to.
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.goldens.comparer import CASES, cases, check
from tests.goldens.gaps import FINAL_GAPS, GAPS
from tests.runtime.spark.resident.jobs import heard
from tidemill.client import json_output
from tidemill.client.script import read_script
from tidemill.runtime.progress import EpochProgress
from tidemill.session.environment import TableEnvironment
from tidemill.session.jobs.job import JobHandle
from tidemill.sql.parser import parse_statement
from tidemill.sql.splitter import split

STRAIGHT = (
    "types",
    "functions",
    "group_agg",
    "errors",
    "cdc",
    "joins",
    "topn_dedup",
    "windows",
    "time",
)
RESIDENT_SAMPLE = 5
"""Every fifth streaming case runs in resident workers, too; 1 for all of them."""
CUT = ("group_agg", "cdc", "joins", "topn_dedup", "windows", "time")

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the recorded cases are not beside this checkout")


# In epochs only final rows are compared, in which few cases have a gap.
def parameters(areas: tuple[str, ...], modes: tuple[str, ...] = ()) -> list[Any]:
    found = []
    for area in areas:
        for case in cases(area):
            if modes and case.mode not in modes:
                continue
            gap = GAPS.get(case.id) if not modes or case.id in FINAL_GAPS else None
            marks = [pytest.mark.xfail(strict=True, reason=gap)] if gap else []
            found.append(pytest.param(case, id=case.id, marks=marks))
    return found


def session(options: dict[str, str] | None = None) -> TableEnvironment:
    environment = TableEnvironment.create(options or {})
    environment.context.rendered = True
    return environment


@pytest.mark.every_case
@pytest.mark.parametrize("case", parameters(STRAIGHT))
def test_straight(case: Any, spark: SparkSession) -> None:
    written = io.StringIO()
    json_output.run_script(case.sql, {}, session, written)
    check(case, json.loads(written.getvalue()))


@pytest.mark.thorough
@pytest.mark.parametrize("case", parameters(CUT, ("final", "changelog")))
def test_in_epochs_stopped_and_resumed(case: Any, spark: SparkSession, tmp_path: Path) -> None:
    check_in_epochs(case, {"execution.checkpointing.dir": str(tmp_path / "checkpoint")})


@pytest.mark.thorough
@pytest.mark.parametrize("case", parameters(CUT, ("final", "changelog"))[::RESIDENT_SAMPLE])
def test_in_resident_workers(case: Any, spark: SparkSession, tmp_path: Path) -> None:
    """Epochs of plans that need the JVM stay Spark jobs."""
    checkpoint = {"execution.checkpointing.dir": str(tmp_path / "checkpoint")}
    with heard() as found:
        check_in_epochs(case, {**checkpoint, "tidemill.epoch.resident": "true"})
    print(f"{case.id}: {len(found.resident)} resident epochs, {len(found.spark)} Spark jobs")
    assert found.failures == []


def check_in_epochs(case: Any, more: dict[str, str]) -> None:
    """Its rows in small epochs, stopped after the first one and resumed."""
    options = {"tidemill.epoch.max-rows": str(rows_per_epoch(case)), **more}
    script = read_script(case.sql, {})
    first, streams = last_query(script, session(options), stop=True)
    if not streams:
        pytest.skip("a batch query has no epochs")
    second, _ = last_query(script, session(options), stop=False)
    second["rows"] = first["rows"] + second["rows"]
    before = [{"sql": p.text} for p in split(script)][:-1]
    check(case, {"script": case.sql, "statements": [*before, second]}, mode="final")


def last_query(script: str, environment: TableEnvironment, *, stop: bool) -> tuple[dict[str, Any], bool]:
    """The answer of the last statement, and whether it streams; with ``stop`` its job ends after
    an epoch."""
    *before, last = split(script)
    for piece in before:
        environment.execute(parse_statement(piece.text, piece.position)).wait()
    running: list[JobHandle] = []

    def after_epoch(progress: EpochProgress) -> None:
        for job in running:
            job.stop()

    if stop:
        environment.context.on_progress = after_epoch
    result = environment.execute(parse_statement(last.text, last.position))
    if result.job is not None:
        running.append(result.job)
    answer = {
        "sql": last.text,
        "columns": [{"name": f.name, "type": str(f.type)} for f in result.fields],
        "rows": list(json_output.json_rows(result)),
    }
    return answer, result.job is not None


def rows_per_epoch(case: Any) -> int:
    """So few that the smallest input file of the case takes three epochs."""
    names = re.findall(r"\$\{DIR\}/([\w./-]+)", Path(case.sql).read_text(encoding="utf-8"))
    files = [CASES / case.area / name for name in names]
    lines = [len(f.read_bytes().splitlines()) for f in files if f.is_file()]
    return max(1, min(lines, default=3) // 3)
