"""What is said of a running job: a line on a terminal, a log elsewhere."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path
from typing import TextIO, cast

import pytest

from tidemill.client.progress import Apart, ProgressLine, ProgressLog, line, span_text, undisturbed
from tidemill.runtime.events import EpochBegun, JobResumed, SoFar
from tidemill.runtime.progress import EpochProgress

PROGRESS = EpochProgress(
    epoch=3, rows_in=1000, rows_out=10, seconds=0.5, state_rows=70, state_bytes=2048, job_id="ab"
)
BEGUN = EpochBegun(job_id="ab", epoch=1, so_far=lambda: SoFar(12, 40, 7000))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_epoch_in_a_line() -> None:
    assert line(PROGRESS, 4000) == (
        "epoch 3 | 4,000 rows in (2,000/s) | 10 out | state 70 rows, 2.0 KiB | lag 0.5 s"
    )


def test_a_terminal_shows_the_epoch_under_way_before_anything_is_committed() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = ProgressLine(stream, clock, lambda: 200)
    progress.event(BEGUN)
    progress.tick()
    assert stream.getvalue() == ""
    clock.now = 7
    progress.tick()
    progress.close()
    assert stream.getvalue() == ("\r\x1b[2Kepoch 1 | 12 of 40 tasks | 7,000 rows in so far | 7 s\r\x1b[2K")


def test_other_output_takes_the_line_away() -> None:
    stream = io.StringIO()
    progress = ProgressLine(stream)
    progress.show(PROGRESS)
    stream.truncate(0)
    stream.seek(0)
    Apart(stream, progress).write("+I[1]\n")
    assert stream.getvalue() == "\r\x1b[2K+I[1]\n"


def test_a_line_stays_out_of_what_others_write() -> None:
    """Neither into the middle of a line, nor over more lines than one: those could not go again."""
    stream = io.StringIO()
    progress = ProgressLine(stream, columns=lambda: 10)
    out = Apart(stream, progress)
    out.write("| a")
    progress.show(PROGRESS)
    out.write(" |\n")
    assert stream.getvalue() == "| a |\n"
    progress.show(PROGRESS)
    assert stream.getvalue() == "| a |\n\r\x1b[2Kepoch 3 |"


def test_a_log_in_the_file_of_a_table_waits_for_its_end(tmp_path: Path) -> None:
    with (
        open(tmp_path / "both", "w+", encoding="utf-8") as out,
        os.fdopen(os.dup(out.fileno()), "w") as errors,
    ):
        log = ProgressLog(errors, Clock())
        apart = cast(TextIO, Apart(out, log))
        with undisturbed(apart):
            apart.write("+---+\n")
            log.event(JobResumed(job_id="ab", epoch=2))
            log.show(PROGRESS)
            apart.write("+---+\n")
            apart.flush()
        log.close()
        assert [line[:25] for line in (tmp_path / "both").read_text().splitlines()] == [
            "+---+",
            "+---+",
            "1970-01-01T00:00:00Z job ",
            "1970-01-01T00:00:00Z job ",
        ]


def test_a_log_elsewhere_does_not_wait(tmp_path: Path) -> None:
    with (
        open(tmp_path / "out", "w", encoding="utf-8") as out,
        open(tmp_path / "log", "w", encoding="utf-8") as errors,
    ):
        log = ProgressLog(errors, Clock())
        with undisturbed(cast(TextIO, Apart(out, log))):
            log.show(PROGRESS)
            assert "epoch 3" in (tmp_path / "log").read_text()
        log.close()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (59.94, "59.9 s"),
        (200, "3 min 20 s"),
        (3599.7, "1 h 0 min"),
        (7500, "2 h 5 min"),
        (3 * 86_400, "3 days"),
        (100 * 86_400, "3 months"),
        (504_077_659.4, "16 years"),
    ],
)
def test_a_span_as_people_say_it(seconds: float, text: str) -> None:
    assert span_text(seconds) == text


def test_a_watermark_that_is_ahead_of_the_clock() -> None:
    said = line(replace(PROGRESS, watermark=62_400, time=60_000), 1)
    assert "| watermark 1970-01-01 00:01:02, 2.4 s ahead | " in said


def test_a_closed_line_stays_away() -> None:
    stream = io.StringIO()
    progress = ProgressLine(stream)
    progress.close()
    progress.show(PROGRESS)
    assert stream.getvalue() == ""


def test_a_log_has_a_line_in_ten_seconds_and_the_last_epoch() -> None:
    stream, clock = io.StringIO(), Clock()
    log = ProgressLog(stream, clock)
    log.event(JobResumed(job_id="ab", epoch=2))
    for second in range(3, 16):
        clock.now = second
        log.show(replace(PROGRESS, epoch=second))
    log.close()
    log.close()
    shown = [text.split(" | lag")[0] for text in stream.getvalue().splitlines()]
    assert shown == [
        "1970-01-01T00:00:00Z job ab resumed after epoch 2",
        "1970-01-01T00:00:03Z job ab epoch 3 | 1,000 rows in (2,000/s) | 10 out | state 70 rows, 2.0 KiB",
        "1970-01-01T00:00:13Z job ab epoch 13 | 11,000 rows in (2,000/s) | 10 out | state 70 rows, 2.0 KiB",
        "1970-01-01T00:00:15Z job ab epoch 15 | 13,000 rows in (2,000/s) | 10 out | state 70 rows, 2.0 KiB",
    ]


def test_a_log_says_the_last_epoch_of_a_job_that_waits_for_more_rows() -> None:
    stream, clock = io.StringIO(), Clock()
    log = ProgressLog(stream, clock)
    log.show(replace(PROGRESS, epoch=1))
    clock.now = 1
    log.show(replace(PROGRESS, epoch=2))
    clock.now = 9.5
    log.tick()
    assert "epoch 2" not in stream.getvalue()
    clock.now = 10
    log.tick()
    log.tick()
    log.close()
    assert [text.split(" | ")[0] for text in stream.getvalue().splitlines()] == [
        "1970-01-01T00:00:00Z job ab epoch 1",
        "1970-01-01T00:00:10Z job ab epoch 2",
    ]
