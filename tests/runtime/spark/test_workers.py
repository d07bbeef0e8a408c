"""What a cluster's workers lack is said when Spark starts, with what to do."""

from __future__ import annotations

import logging
import threading

import pytest

from tidemill.errors import SetupError
from tidemill.runtime.spark import worker_versions, workers
from tidemill.runtime.spark.failures import translated
from tidemill.runtime.spark.shipped import package_archive
from tidemill.runtime.spark.workers import compare

HERE = {
    "host": "driver",
    "program": "/venv/bin/python",
    "python": "3.11.7",
    "pyarrow": "26.0.1",
    "numpy": "2.4.6",
    "xxhash": "4.1.0",
    "pyspark": "4.3.0",
    "tidemill": "/site-packages/tidemill/__init__.py",
}
THERE = {**HERE, "host": "w7", "tidemill": f"/work{package_archive()}/tidemill/__init__.py"}


def test_a_worker_like_the_driver() -> None:
    compare(HERE, THERE)
    compare(HERE, {**THERE, "pyarrow": "26.9.0"})


@pytest.mark.parametrize(
    ("different", "said"),
    [
        ({"pyarrow": "20.0.0"}, "on worker w7 has pyarrow 20.0.0, the driver 26.0.1"),
        ({"numpy": "1.26.4"}, "on worker w7 has numpy 1.26.4, the driver 2.4.6"),
        (
            {"xxhash": "missing: No module named 'xxhash'"},
            "'/venv/bin/python' on worker w7 cannot import xxhash: No module named 'xxhash'",
        ),
        ({"tidemill": "/usr/lib/tidemill/__init__.py"}, "loads another Tidemill .*: /usr/lib/tidemill"),
    ],
)
def test_another_worker(different: dict[str, str], said: str) -> None:
    with pytest.raises(SetupError, match=said) as e:
        compare(HERE, {**THERE, **different})
    assert e.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'java.io.IOException: Cannot run program "./environment/bin/python": error=2, No such file',
            r"cannot run './environment/bin/python'",
        ),
        (
            "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker "
            "has different version: 3.9 than that in driver: 3.11, PySpark cannot run\n  at",
            "is not the driver's: Python in worker has different version: 3.9 than that in driver: 3.11",
        ),
        (
            "Error from python worker:\n  ModuleNotFoundError: No module named 'numpy'\nPYTHONPATH was:",
            "has no module 'numpy'",
        ),
    ],
)
def test_what_a_worker_says_before_it_runs_our_code(text: str, said: str) -> None:
    error = translated(RuntimeError(f"Job aborted: {text}"))
    assert isinstance(error, SetupError)
    assert said.replace("\\", "") in error.message
    assert "--py-env" in error.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (workers.no_executor("spark://h:7077"), "'spark://h:7077' has not given an executor"),
        (workers.no_answer("yarn"), "'yarn' has not taken the application"),
    ],
)
def test_a_cluster_that_says_nothing(text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    warned = threading.Event()

    def warning(text: str) -> None:
        texts.append(text)
        warned.set()

    monkeypatch.setattr(workers, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(logging.getLogger("tidemill"), "warning", warning)
    with workers.said_when_long(text):
        assert warned.wait(60)
    assert said in texts[0]


def test_the_question_is_answered_without_anything_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_versions, "LIBRARIES", ("numpy", "surely_not_there"))
    (found,) = worker_versions.versions(())
    assert found["surely_not_there"] == "missing: No module named 'surely_not_there'"
    assert found["numpy"][0].isdigit()
    assert found["tidemill"].endswith("tidemill/__init__.py")
