"""What is counted of jobs, and how Prometheus reads it."""

from __future__ import annotations

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tidemill.client.run_console import served
from tidemill.client.run_watch import LOCAL, RunWatch, metrics_served
from tidemill.config.option import Configuration
from tidemill.runtime.events import JobAudited, JobBegun, JobFailed
from tidemill.runtime.progress import EpochProgress, NodeProgress
from tidemill.session.history.job_metrics import JobMetrics, prometheus_text
from tidemill.session.history.watch import NodeTotals
from tidemill.session.jobs.job import EndedJob
from tidemill.session.jobs.started import Jobs

EPOCH = EpochProgress(
    epoch=1, rows_in=5, rows_out=3, seconds=0.5, state_rows=2, state_bytes=9, job_id="j", watermark=1_000_500
)


def told(metrics: JobMetrics) -> None:
    metrics.event(JobBegun(job_id="j", name="n", plan=()))
    nodes = {"op": NodeProgress(rows_in=5, largest_key=4), "out": NodeProgress(rows_in=3)}
    metrics.epoch(
        EpochProgress(**{name: getattr(EPOCH, name) for name in EPOCH.__slots__} | {"nodes": nodes})
    )
    metrics.event(JobFailed(job_id="j", error="e", wait=1.0))
    metrics.event(JobFailed(job_id="j", error="e", wait=None))


def test_event_time_restarts_status_and_the_largest_key() -> None:
    metrics = JobMetrics(statuses=lambda _: {"j": "RESTARTING"}, clock=lambda: 1_010.0)
    told(metrics)
    lines = prometheus_text(metrics.samples()).splitlines()
    for line in (
        "# TYPE tidemill_job_restarts_total counter",
        'tidemill_job_restarts_total{job="j"} 1',
        "# TYPE tidemill_job_watermark_timestamp_seconds gauge",
        'tidemill_job_watermark_timestamp_seconds{job="j"} 1000.5',
        'tidemill_job_watermark_behind_seconds{job="j"} 9.5',
        'tidemill_job_largest_key_rows{job="j",operator="op"} 4',
        'tidemill_job_status{job="j",status="RESTARTING"} 1',
        'tidemill_job_status{job="j",status="RUNNING"} 0',
        'tidemill_job_rows_in_total{job="j"} 5',
    ):
        assert line in lines
    assert not any('operator="out"' in line for line in lines)
    families = [line.split()[2] for line in lines if line.startswith("#")]
    assert len(families) == len(set(families))


def test_audits_are_counted() -> None:
    metrics = JobMetrics(clock=lambda: 70.0)
    told(metrics)
    assert "audit" not in prometheus_text(metrics.samples())
    metrics.event(JobAudited(job_id="j"))
    metrics.event(JobAudited(job_id="j", differences=3, first="t the job k=1"))
    metrics.event(JobAudited(job_id="j", error="The history is gone"))
    lines = prometheus_text(metrics.samples()).splitlines()
    for line in (
        'tidemill_job_audits_total{job="j"} 2',
        'tidemill_job_audit_differences{job="j"} 3',
        'tidemill_job_last_audit_timestamp_seconds{job="j"} 70.0',
    ):
        assert line in lines


def test_a_job_that_has_no_epoch_yet_is_there() -> None:
    metrics = JobMetrics(statuses=lambda _: {"j": "RUNNING"})
    metrics.event(JobBegun(job_id="j", name="n", plan=()))
    text = prometheus_text(metrics.samples())
    assert 'tidemill_job_epochs_total{job="j"} 0' in text
    assert "watermark" not in text


def test_the_skew_of_an_operator_over_its_partitions() -> None:
    first = NodeProgress.of(
        [
            {"partition": 0, "of": 4, "rows_in": 6, "largest_key": 5},
            {"partition": 2, "of": 4, "rows_in": 2, "largest_key": 2},
        ]
    )
    assert (first.partitions, first.largest_key) == ({"0": 6, "1": 0, "2": 2, "3": 0}, 5)
    totals = NodeTotals().after(first).after(first).after(NodeProgress())
    assert (totals.partitions, totals.skew, totals.largest_key) == ({"0": 12, "1": 0, "2": 4, "3": 0}, 3.0, 5)
    assert NodeTotals().skew == 0


def test_a_run_serves_its_metrics_and_its_console() -> None:
    watch = RunWatch.of(Configuration({}))
    watch.sessions.append(Jobs())
    watch.sessions[0].add(EndedJob("j", "n", "FINISHED"))
    told(watch.metrics)
    watch.metrics.event(JobBegun(job_id="q", name="a query", plan=()))
    with metrics_served(watch.metrics, LOCAL, 0) as port, served(watch, LOCAL, 0) as address:
        for place in (f"http://{LOCAL}:{port}", address):
            with urlopen(f"{place}/metrics") as answer:
                text = answer.read().decode()
            assert 'tidemill_job_status{job="j",status="FINISHED"} 1\n' in text
            assert 'tidemill_job_status{job="q",status="RUNNING"} 1\n' in text
        with urlopen(f"{address}/console/api/jobs") as answer:
            jobs = json.loads(answer.read())["jobs"]
        assert {(job["id"], job["name"], job["status"]) for job in jobs} == {
            ("j", "n", "FINISHED"),
            ("q", "a query", "RUNNING"),
        }
        stop = Request(f"{address}/console/api/jobs/q/stop", b"{}", method="POST")
        with pytest.raises(HTTPError) as refused:
            urlopen(stop)
        assert "Ctrl-C" in refused.value.read().decode()
        with urlopen(f"{address}/console/api/hello") as answer:
            assert b'"sql": false' in answer.read()
