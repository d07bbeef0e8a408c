"""What is said of stages and tasks: a task is slow by its time for a byte."""

from __future__ import annotations

from typing import Any

import pytest

from tidemill.client.progress import slow_node_line, slow_task_line
from tidemill.runtime.stage_runs import (
    OperatorRows,
    SlowNode,
    rows_from_sources,
    slow_tasks,
    stage_run,
    with_rows_passed_on,
)

MB = 1 << 20


def stage(**changes: Any) -> dict[str, Any]:
    return {
        "stageId": 4,
        "attemptId": 1,
        "name": "collect at x\nmore",
        "status": "COMPLETE",
        "numTasks": 20,
        "numFailedTasks": 2,
        "numKilledTasks": 1,
        "submissionTime": "2026-01-02T03:04:05.000GMT",
        "completionTime": "2026-01-02T03:05:06.250GMT",
        "inputRecords": 3,
        "inputBytes": 4,
        "shuffleReadRecords": 5,
        "shuffleReadBytes": 6,
        "shuffleWriteBytes": 7,
        "diskBytesSpilled": 8,
        "taskMetricsDistributions": {
            "executorRunTime": [1000.0, 10_000.0],
            "inputMetrics": {"bytesRead": [0.0, 0.0]},
            "shuffleReadMetrics": {"readBytes": [10.0 * MB, 80.0 * MB]},
        },
        **changes,
    }


def task(seconds: float, megabytes: float, *, copy: bool = False, status: str = "SUCCESS") -> dict[str, Any]:
    return {
        "index": 7,
        "host": "h3",
        "status": status,
        "speculative": copy,
        "duration": int(seconds * 1000),
        "taskMetrics": {
            "executorRunTime": int(seconds * 1000) - 1,
            "shuffleReadMetrics": {"remoteBytesRead": int(megabytes * MB) - 5, "localBytesRead": 5},
        },
    }


def test_a_stage_as_spark_tells_it() -> None:
    run = stage_run(stage(speculationSummary={"numTasks": 3}), ("2",))
    assert (run.stage, run.attempt, run.name, run.seconds) == (4, 1, "collect at x", 61.25)
    assert (run.tasks, run.failed, run.killed, run.copies, run.rows_read) == (20, 2, 1, 3, 8)
    assert (run.skew, run.excluded, run.is_uneven) == (8.0, ("2",), True)
    bare = stage_run(stage(taskMetricsDistributions=None, completionTime=None))
    assert (bare.skew, bare.seconds, bare.copies, bare.is_uneven) == (1.0, 0.0, 0, False)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (task(10, 10), "was slow: 10.0 s for 10.0 MiB, the median task 1.0 s for 10.0 MiB"),
        (task(10, 80), "had more to read: 10.0 s for 80.0 MiB"),
        (task(10, 20), "was slow: 10.0 s for 20.0 MiB"),
        (task(10, 10, status="KILLED"), "was slow"),
        (task(1, 10, copy=True), "is a second attempt that ended first: 1.0 s"),
        (task(10, 10, copy=True, status="KILLED"), "is a second attempt: 10.0 s"),
        (task(2.9, 10), ""),
    ],
)
def test_slow_is_who_needs_long_for_what_there_is(found: dict[str, Any], said: str) -> None:
    told = slow_tasks(stage_run(stage()), [found])
    if not said:
        assert told == ()
    else:
        assert slow_task_line(told[0]).startswith(f"task 7 of stage 4 on h3 {said}")


def test_where_bytes_are_not_known_time_alone_says_it() -> None:
    blind = stage(taskMetricsDistributions={"executorRunTime": [1000.0, 10_000.0]})
    (told,) = slow_tasks(stage_run(blind), [task(10, 0)])
    assert not told.more
    line = "took long: 10.0 s, the median task 1.0 s; Spark did not see what they read"
    assert slow_task_line(told) == f"task 7 of stage 4 on h3 {line}"
    (told,) = slow_tasks(stage_run(blind), [task(1, 0, copy=True)])
    assert "is a second attempt that ended first: 1.0 s, the median task" in slow_task_line(told)
    short = stage(taskMetricsDistributions={"executorRunTime": [1.0, 900.0]})
    assert not stage_run(short).is_uneven


def test_a_host_that_got_no_tasks() -> None:
    node = SlowNode(host="h3", begun=1772359206.5, ended=1772359266.5, stage=4, task=7)
    line = "h3 got no tasks from 10:00:06 UTC for 60 s: a copy of its task 7 of stage 4 came first"
    assert slow_node_line(node) == line


def test_rows_from_sources() -> None:
    """The parts of a source that Python decodes are no rows of it."""
    below = [("Join", 0, 4), ("MapInArrow", 1, 30), ("SerializeFromObject", 2, None), ("Scan", 3, 2)]
    other = [("Filter", 1, 3), ("Scan parquet", 2, 50), ("LocalTableScan", 1, 7)]
    operators = [OperatorRows(name=name, depth=depth, rows=rows) for name, depth, rows in below + other]
    assert rows_from_sources(operators) == 30 + 50 + 7
    assert rows_from_sources([]) == 0


def test_rows_that_are_passed_on() -> None:
    """An operator that counts no rows gives what is below it, if that is known."""
    plan = [
        ("Project", 0, None),
        ("Sort", 1, None),
        ("Filter", 2, 3),
        ("Project", 3, None),
        ("Scan", 4, None),
    ]
    operators = [OperatorRows(name=name, depth=depth, rows=rows) for name, depth, rows in plan]
    assert [o.rows for o in with_rows_passed_on(operators)] == [3, 3, 3, None, None]
