"""Recorded answers of Flink 2.3 about time, from inputs in several files, in epochs of any size, stopped and
resumed several times.

``--seed`` chooses the cuts, ``--queries`` / 5 how many cases are run. Final rows are compared: where epochs
end decides which intermediate changes are seen, never what they add up to.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.goldens.comparer import CASES, cases, check
from tests.goldens.gaps import FINAL_GAPS
from tests.goldens.oracle_goldens import last_query, session
from tidemill.client.script import read_script
from tidemill.sql.splitter import split

AREAS = ("windows", "time", "joins")
SHARE = 5
PATH = re.compile(r"\$\{DIR\}/([\w./-]+)")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    seed = metafunc.config.getoption("--seed")
    known = [
        c
        for area in AREAS
        for c in cases(area)
        if c.mode in ("final", "changelog") and c.id not in FINAL_GAPS
    ]
    count = min(len(known), -(-metafunc.config.getoption("--queries") // SHARE))
    chosen = Random(seed).sample(known, count)
    metafunc.parametrize("case", chosen, ids=lambda c: f"{c.id}-seed={seed}")


@pytest.mark.random_queries
@pytest.mark.skipif(not CASES.exists(), reason="the recorded cases are not beside this checkout")
def test_any_cut_gives_the_recorded_answer(
    case: Any, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    chance = Random(f"{request.config.getoption('--seed')} {case.id}")
    script = in_files(case, tmp_path, chance)
    text = read_script(str(script), {})
    rows: list[Any] = []
    for stop in (True,) * chance.randint(1, 4) + (False,):
        options = {
            "tidemill.epoch.max-rows": str(chance.choice((1, 1, 2, 3, 5, 8))),
            "execution.checkpointing.dir": str(tmp_path / "checkpoint"),
        }
        answer, streams = last_query(text, session(options), stop=stop)
        if not streams:
            pytest.skip("a batch query has no epochs")
        rows += answer["rows"]
    before = [{"sql": p.text} for p in split(text)][:-1]
    check(case, {"script": case.sql, "statements": [*before, {**answer, "rows": rows}]}, mode="final")


def in_files(case: Any, folder: Path, chance: Random) -> Path:
    """A copy of the case's script, whose inputs are cut into files that are read one after the other."""
    source = Path(case.sql)
    script = folder / source.name
    text = source.read_text(encoding="utf-8")
    script.write_text(text, encoding="utf-8")
    for name in set(PATH.findall(text)):
        given, copied = source.parent / name, folder / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        if given.is_dir():
            shutil.copytree(given, copied, dirs_exist_ok=True)
        elif given.is_file():
            cut(given, copied, chance)
    return script


def cut(given: Path, folder: Path, chance: Random) -> None:
    """Whole lines; in a quarter of the cases one file."""
    lines = given.read_bytes().splitlines(keepends=True)
    ends = sorted(chance.randint(0, len(lines)) for _ in range(chance.randint(0, 3)))
    folder.mkdir()
    for number, (start, end) in enumerate(zip([0, *ends], [*ends, len(lines)], strict=True)):
        if end > start or not lines:
            (folder / f"part-{number}{given.suffix}").write_bytes(b"".join(lines[start:end]))
