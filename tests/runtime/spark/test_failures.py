"""Spark's errors in Tidemill's terms."""

from __future__ import annotations

import pytest

from tidemill.errors import (
    ConnectorError,
    ExecutionError,
    InternalError,
    LostProcessError,
    StateError,
    TidemillError,
)
from tidemill.runtime.spark.failures import SENT_TOO_MUCH, translated

_OVERFLOW = "Datetime operation overflow: add 9L MONTH to TIMESTAMP '2020-01-01' [UTC]."
_TRACE = "\n".join(
    (
        "An error occurred while calling o1.getResult.",
        ": org.apache.spark.SparkException: Exception thrown in awaitResult: ",
        *("\tat org.apache.spark.Somewhere" for _ in range(30)),
        "Caused by: org.apache.spark.SparkException: Job aborted",
        "\tat org.apache.spark.Elsewhere",
        "Caused by: java.lang.IllegalStateException: Not now",
        "\tat java.base/java.lang.Thread",
        "\t... 1 more",
    )
)


def test_a_value_that_spark_cannot_take_is_an_error_of_the_query() -> None:
    given = f"[INTERNAL_ERROR] Job failed. SQLSTATE: XX000\n[DATETIME_OVERFLOW] {_OVERFLOW} SQLSTATE: 22008"
    found = translated(RuntimeError(given))
    assert isinstance(found, ExecutionError)
    assert found.message == _OVERFLOW


@pytest.mark.parametrize(
    ("java", "said"),
    [
        (
            "Illegal repetition range near index 5\na{2,1}\n     ^\n\tat x",
            "'a{2,1}' is wrong: Illegal repetition range, at character 6",
        ),
        ("Unclosed group near index 2\nk(", "'k(' is wrong: Unclosed group, at character 3"),
        ("Named capturing group is missing\n(?<\n", "'(?<' is wrong: Named capturing group is missing"),
    ],
)
def test_a_wrong_pattern_is_an_error_of_the_query_that_shows_the_place(java: str, said: str) -> None:
    found = translated(RuntimeError(f"Caused by: java.util.regex.PatternSyntaxException: {java}"))
    assert isinstance(found, ExecutionError)
    assert found.message == f"The regular expression {said}"


def test_a_result_that_the_driver_has_no_room_for() -> None:
    spark = (
        "Total size of serialized results of 9 tasks (1026.0 MiB) is bigger than spark.driver.maxResultSize"
    )
    found = translated(RuntimeError(f"Job aborted due to stage failure: {spark} 1024.0 MiB"))
    assert isinstance(found, ExecutionError)
    assert "INSERT" in found.hint


def test_other_conditions_are_internal() -> None:
    found = translated(RuntimeError("[INTERNAL_ERROR] No 22. SQLSTATE: XX000"))
    assert isinstance(found, InternalError)


_LAST_TRY = (
    "Job aborted due to stage failure: Task 0 in stage 5.0 failed 3 times, most recent failure: Lost task "
    "0.2 in stage 5.0 (TID 20) (host executor driver): "
)


@pytest.mark.parametrize(
    "cause",
    [
        "java.io.IOException: Stream closed\n\tat java.base/java.lang.ProcessBuilder",
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
        "org.apache.spark.SparkException: EOFException while reading the port number from its stdout",
        "ExecutorLostFailure (executor 1 exited caused by one of the running tasks)",
        "java.net.SocketException: Connection reset",
    ],
)
def test_a_process_that_is_gone_is_no_fault_of_the_work(cause: str) -> None:
    found = translated(RuntimeError(_LAST_TRY + cause))
    assert isinstance(found, LostProcessError)
    assert cause.partition("\n")[0] in found.message


@pytest.mark.parametrize(
    "said",
    [
        "Cannot broadcast the table that is larger than 8.0 GiB: 9.1 GiB.",
        "Not enough memory to build and broadcast the table to all worker nodes.",
    ],
)
def test_a_side_that_cannot_be_sent_is_said_to_be_too_large(said: str) -> None:
    found = translated(RuntimeError(f"org.apache.spark.SparkException: {said}"))
    assert isinstance(found, ExecutionError)
    assert found.message == SENT_TOO_MUCH


@pytest.mark.parametrize("batch", [False, True])
def test_a_full_disk_is_no_lost_process(batch: bool) -> None:
    """A batch job has no epochs to go on from."""
    error = RuntimeError(_LAST_TRY + "java.io.IOException: No space left on device")
    found = translated(error, batch=batch)
    assert isinstance(found, StateError)
    assert ("epoch" in str(found.hint)) is not batch


@pytest.mark.parametrize(
    ("cause", "kind", "said", "hint"),
    [
        (
            "java.io.IOException: No space left on device\n\tat x",
            StateError,
            "Writing temporary files failed: No space left on device. Spark keeps them in /a, /b",
            "'spark.local.dir'",
        ),
        (
            "OSError: [Errno 28] No space left on device: '/c/d'\n",
            StateError,
            "Writing temporary files failed: No space left on device: '/c/d'",
            "'spark.local.dir'",
        ),
        (
            "java.nio.file.AccessDeniedException: /b/blockmgr-1/0c/shuffle\n\tat x",
            StateError,
            "Writing temporary files failed: Permission denied: '/b/blockmgr-1/0c/shuffle'",
            "'spark.local.dir'",
        ),
        (
            "java.io.FileNotFoundException: /b/blockmgr-1/0c/shuffle (Permission denied)\n\tat x",
            StateError,
            "Writing temporary files failed: Permission denied: '/b/blockmgr-1/0c/shuffle'",
            "'spark.local.dir'",
        ),
        (
            "java.io.FileNotFoundException: /bad/file (Permission denied)\n\tat x",
            ConnectorError,
            "Spark's processes may not open /bad/file: Permission denied",
            "",
        ),
    ],
)
def test_what_a_batch_job_cannot_keep_meanwhile(
    monkeypatch: pytest.MonkeyPatch, cause: str, kind: type[TidemillError], said: str, hint: str
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/a, /b")
    found = translated(RuntimeError(_LAST_TRY + cause), batch=True)
    assert type(found) is kind
    assert found.message == said
    assert hint in found.hint


def test_a_file_that_is_not_there_is_not_denied() -> None:
    text = "java.io.FileNotFoundException: /b/file (No such file or directory)"
    assert isinstance(translated(RuntimeError(text), batch=True), InternalError)


def test_the_root_cause_is_shown_however_long_the_trace_before_it() -> None:
    found = translated(RuntimeError(_TRACE))
    assert isinstance(found, InternalError)
    assert found.message.splitlines() == [
        "Spark failed: An error occurred while calling o1.getResult.",
        ": org.apache.spark.SparkException: Exception thrown in awaitResult: ",
        "Caused by: java.lang.IllegalStateException: Not now",
        "\tat java.base/java.lang.Thread",
        "\t... 1 more",
    ]
