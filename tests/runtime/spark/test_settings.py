"""What Spark is started with: whose word counts, and what a cluster's workers are sent."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tidemill.runtime.spark.settings import spark_settings
from tidemill.runtime.spark.shipped import package_archive

MASTER = "spark.master"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_MASTER", "SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)


def test_whose_word_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert spark_settings({})[MASTER] == "local[*,3]"
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.master local[7]\nspark.driver.memory 9g\nother.key x\nspark.app.name defaults\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    found = spark_settings({"spark.app.name": "mine"})
    assert (found[MASTER], found["spark.driver.memory"], found["spark.app.name"]) == (
        "local[7]",
        "9g",
        "mine",
    )
    assert "other.key" not in found
    monkeypatch.setenv("SPARK_MASTER", "local[5]")
    assert spark_settings({})[MASTER] == "local[5]"
    assert spark_settings({"tidemill.spark.master": "local[4]"})[MASTER] == "local[4]"
    assert spark_settings({"tidemill.spark.master": "local[4]", MASTER: "local[3]"})[MASTER] == "local[3]"


def test_the_workers_python(monkeypatch: pytest.MonkeyPatch) -> None:
    assert spark_settings({})["spark.pyspark.python"] == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python3")
    assert spark_settings({})["spark.pyspark.python"] == "/usr/bin/python3"
    assert spark_settings({"spark.pyspark.python": "p"})["spark.pyspark.python"] == "p"


def test_a_cluster_is_sent_the_package() -> None:
    given = {MASTER: "spark://h:7077", "spark.files": "/a.txt", "spark.executorEnv.PYTHONPATH": "mine"}
    found = spark_settings(given)
    archive = package_archive()
    assert found["spark.files"] == f"/a.txt,{archive}"
    assert found["spark.executorEnv.PYTHONPATH"] == f"{os.path.basename(archive)}:mine"
    assert "spark.files" not in spark_settings({MASTER: "local[2]"})


def test_yarn_has_keys_of_its_own() -> None:
    given = {MASTER: "yarn", "spark.archives": "e.tgz#environment", "spark.yarn.dist.files": "mine"}
    found = spark_settings(given)
    assert found["spark.yarn.dist.files"] == f"mine,{package_archive()}"
    assert found["spark.yarn.dist.archives"] == "e.tgz#environment"
    assert "spark.files" not in found
    assert "spark.archives" not in found


def test_the_archive_is_the_package(tmp_path: Path) -> None:
    """Alone on the path it gives the workers' modules, from inside the archive."""
    archive = package_archive()
    assert package_archive() == archive
    with zipfile.ZipFile(archive) as packed:
        assert packed.testzip() is None
    code = "import tidemill.runtime.spark.worker_daemon as d; print(d.__file__)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": archive},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == f"{archive}/tidemill/runtime/spark/worker_daemon.py"


def test_slow_tasks_are_started_again_where_there_is_another_machine() -> None:
    """Unless somebody said no, be it in Spark's own words."""
    remote, key = {"spark.master": "spark://h:7077"}, "execution.batch.speculative.enabled"
    assert "spark.speculation" not in spark_settings({})
    assert spark_settings({key: "true"})["spark.speculation"] == "true"
    assert spark_settings(remote)["spark.speculation"] == "true"
    assert spark_settings({**remote, key: "false"})["spark.speculation"] == "false"
    assert spark_settings({**remote, "spark.speculation": "false"})["spark.speculation"] == "false"
    bound = {"slow-task-detector.execution-time.baseline-lower-bound": "5 s"}
    assert spark_settings({**remote, **bound})["spark.speculation.minTaskRuntime"] == "5000ms"
    blocked, counted = "spark.tidemill.slowNode.blockedMillis", "spark.excludeOnFailure.stage"
    counted += ".maxFailedTasksPerExecutor"
    assert spark_settings(remote)[blocked] == "60000"
    assert (
        spark_settings({**remote, key.replace("enabled", "block-slow-node-duration"): "0 s"})[blocked] == "0"
    )
    one = {**remote, key.replace("enabled", "max-concurrent-executions"): "1"}
    assert spark_settings(one)["spark.speculation"] == "false"
    assert counted in spark_settings(remote)
    assert counted not in spark_settings({**remote, "spark.excludeOnFailure.enabled": "true"})
