"""Which failures of a job with pipelined exchanges are no fault of the query."""

from __future__ import annotations

import pytest

from tidemill.spark_internals.pipelined import why_not

_ABORTED = "Job aborted due to stage failure: Task 0 in stage 5.0 failed 1 times: "


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "[CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT] Cannot run the pipelined stage group: it needs 8 "
            "concurrent task slots to run all its stages together, but only 3 are currently free. The stages",
            "Spark refused: needs 8 concurrent task slots, only 3",
        ),
        (
            "[PIPELINED_SHUFFLE_UNSUPPORTED] A pipelined shuffle stage group cannot be scheduled because it "
            "uses an unsupported feature: push-based shuffle merge. Pipelined (incrementally) shuffles",
            "Spark refused: push-based shuffle merge",
        ),
        (
            "A job that mixes a pipelined shuffle dependency with a regular shuffle dependency",
            "Spark refused: mixes a pipelined shuffle dependency with a regular",
        ),
        (
            f"{_ABORTED}Connection to streaming shuffle writer 4 closed before termination; the writer",
            "a task that writes one ended before its time",
        ),
        (
            f"{_ABORTED}io.netty.channel.StacklessClosedChannelException\n\tat x",
            "a task that reads one ended before all was sent",
        ),
        (
            "Caused by: io.netty.channel.unix.Errors$NativeIoException: send(..) failed with error(-32): "
            "Broken pipe",
            "a task that reads one ended before all was sent",
        ),
        (
            f"{_ABORTED}java.io.IOException: Connection reset by peer\n\tat x",
            "a task that reads one ended before all was sent",
        ),
        (f"{_ABORTED}java.io.IOException: No space left on device", ""),
        (f"{_ABORTED}java.lang.IllegalStateException: Not now", ""),
        (f"{_ABORTED}[PYTHON_EXCEPTION] ValueError: writer", ""),
    ],
)
def test_why_not(text: str, reason: str) -> None:
    assert why_not(text) == reason
