"""What a ``tidemill run`` shows of its jobs while it runs: metrics for Prometheus, a console for browsers.

Both are there before the first job, and go with the process.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from threading import Thread

from tidemill.config.option import Configuration
from tidemill.errors import NotSupportedError, SetupError, ValidationError
from tidemill.session.context import SessionContext
from tidemill.session.history.job_metrics import TEXT_FORMAT, JobMetrics, prometheus_text
from tidemill.session.history.keeper import Keeper, own_records
from tidemill.session.history.records import Records
from tidemill.session.history.watch import JobWatch
from tidemill.session.jobs.job import EndedJob
from tidemill.session.jobs.started import Jobs, StartedJob

LOCAL = "127.0.0.1"
_CONSOLE = "tidemill.client.run_console"


@dataclass(frozen=True, slots=True)
class RunWatch:
    """Of the jobs of all scripts of a run. ``records``: of those that have ended."""

    records: Records
    sessions: list[Jobs] = field(default_factory=list)
    watch: JobWatch = field(default_factory=JobWatch)
    metrics: JobMetrics = field(default_factory=JobMetrics)

    @classmethod
    def of(cls, config: Configuration) -> RunWatch:
        made = cls(own_records(config))
        made.metrics.statuses = lambda _: {s.job.job_id: s.job.status for s in made._inserts()}
        return made

    def jobs(self) -> Jobs:
        """The INSERTs of all sessions, and the queries."""
        found, inserts = Jobs(), self._inserts()
        for insert in inserts:
            found.put_back(insert.job, insert.started)
        known = {insert.job.job_id for insert in inserts}
        for job, name, status, begun in self.metrics.seen():
            if job not in known:
                found.put_back(_Query(job, name, status), dt.datetime.fromtimestamp(begun, dt.UTC))
        return found

    def _inserts(self) -> list[StartedJob]:
        return [started for jobs in list(self.sessions) for started in jobs.all()]

    def follow(self, context: SessionContext) -> None:
        self.sessions.append(context.jobs)
        context.history = Keeper(records=self.records, watch=self.watch, metrics=self.metrics)


class _Query(EndedJob):
    """A query that has ended, or gives its rows to standard output: nobody else ends it."""

    def stop(self) -> None:
        if self.status == "RUNNING":
            raise NotSupportedError("A query of 'tidemill run' ends only with Ctrl-C in its own terminal.")

    abort = stop


@contextmanager
def serving(watch: RunWatch, *, metrics_at: str, console_at: str) -> Iterator[None]:
    """``metrics_at``, ``console_at``: ``[HOST:]PORT``, '' for neither. SetupError where it is taken."""
    with ExitStack() as servers:
        if metrics_at:
            servers.enter_context(metrics_served(watch.metrics, *_address(metrics_at)))
        if console_at:
            served = import_module(_CONSOLE).served  # with a web server, which other runs need not load
            servers.enter_context(served(watch, *_address(console_at)))
        yield


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdecimal() or int(port) > 65_535:
        raise ValidationError(f"'{text}' is not of the form [HOST:]PORT.")
    return host or LOCAL, int(port)


@contextmanager
def metrics_served(metrics: JobMetrics, host: str, port: int) -> Iterator[int]:
    """Answers ``/metrics`` to anybody; on which port."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path.partition("?")[0] == "/metrics"
            content = (
                prometheus_text(metrics.samples()).encode() if found else b"Not found: /metrics is here.\n"
            )
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", TEXT_FORMAT if found else "text/plain")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Scrapes are no news."""

    try:
        server = ThreadingHTTPServer((host, port), Answer)
    except OSError as e:
        raise SetupError(
            f"Metrics cannot be served on {host}:{port}: {e.strerror or e}",
            hint="Choose another --metrics-port, or 0 for any free port.",
        ) from e
    Thread(target=server.serve_forever, name="tidemill-metrics", daemon=True).start()
    sys.stderr.write(f"Metrics on http://{host}:{server.server_port}/metrics\n")
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
