"""Jobs on a real standalone cluster give what they give on one machine, whoever is killed meanwhile."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.join_job import SCRIPT, folded, write_changes, written
from tests.cluster.standalone import Standalone, standalone

OPTIONS = (
    "spark.cores.max=2",
    "spark.executor.memory=512m",
    "spark.driver.memory=512m",
    "tidemill.epoch.max-rows=150",
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def command(cluster: Standalone, folder: Path, *more: str) -> list[str]:
    script = folder / "job.sql"
    script.write_text(SCRIPT.format(place=folder))
    given = [arg for option in OPTIONS for arg in ("-D", option)]
    run = [sys.executable, "-m", "tidemill", "run", str(script), "--master", cluster.url]
    return [*run, "--checkpoint-dir", str(folder / "checkpoint"), *given, *more]


def test_a_job_on_a_cluster(cluster: Standalone, tmp_path: Path) -> None:
    expected = write_changes(tmp_path, changes=800)
    shared = ("-D", f"tidemill.shared-filesystem={tmp_path}")
    done = subprocess.run(command(cluster, tmp_path, *shared), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert folded(written(tmp_path)) == expected
