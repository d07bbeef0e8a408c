"""What a collector of OpenTelemetry hears: statements and epochs as spans, and the metrics."""

from __future__ import annotations

import datetime as dt
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.gateway.fakes import gateway
from tidemill.config.option import Configuration
from tidemill.errors import ValidationError
from tidemill.gateway.service.operation import Control
from tidemill.gateway.service.telemetry import Silent
from tidemill.gateway.start import GatewayProcess
from tidemill.runtime.progress import EpochProgress

LONG = 60.0
_EPOCH = EpochProgress(
    epoch=3, rows_in=10, rows_out=4, seconds=2.0, state_rows=5, state_bytes=600, job_id="j"
)


def _wrong(_: Control) -> None:
    raise ValidationError("there is no such table")


def _values(reader: Any) -> dict[tuple[str, str], float]:
    data = reader.get_metrics_data()
    return {
        (metric.name, ",".join(point.attributes.values())): point.value
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    }


def test_statements_and_epochs_are_spans_and_metrics_are_asked_for(tmp_path: Path) -> None:
    trace = import_module("opentelemetry.sdk.trace.export")
    memory = import_module("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    metrics = import_module("opentelemetry.sdk.metrics.export")
    kind = import_module("tidemill.gateway.open_telemetry").OpenTelemetry
    made, _ = gateway(tmp_path, {"bad": _wrong})
    spans, reader = memory.InMemorySpanExporter(), metrics.InMemoryMetricReader()
    made.telemetry = kind(made, trace.SimpleSpanProcessor(spans), reader)
    begun = dt.datetime.now(dt.UTC).timestamp() * 1e9
    session = made.open_session({})
    for text in ("good 'password' = 'x'", "bad"):
        operation = made.execute(session, text)
        made.wait(session, operation, LONG)
        made.close_operation(session, operation)  # no second span
    made.epoch(_EPOCH)
    good, bad, epoch = spans.get_finished_spans()
    assert [s.name for s in (good, bad, epoch)] == ["statement", "statement", "epoch"]
    assert (good.attributes["tidemill.status"], bad.attributes["tidemill.status"]) == ("FINISHED", "ERROR")
    assert good.attributes["db.query.text"] == "good 'password' = '******'"
    assert good.status.is_unset
    assert bad.status.description == "there is no such table"
    assert begun - 1e9 < good.start_time <= good.end_time
    assert dict(epoch.attributes) == {
        "tidemill.job": "j",
        "tidemill.epoch": 3,
        "tidemill.rows_in": 10,
        "tidemill.rows_out": 4,
        "tidemill.late_rows": 0,
        "tidemill.state_bytes": 600,
    }
    assert abs(epoch.end_time - epoch.start_time - 2e9) < 1e9
    found = _values(reader)
    assert found["tidemill_sessions", ""] == 1
    assert found["tidemill_operations_total", "FINISHED"] == 1
    assert found["tidemill_job_rows_in_total", "j"] == 10
    made.telemetry.close()


def test_nothing_of_it_is_there_unless_it_is_asked_for(tmp_path: Path) -> None:
    house = GatewayProcess(Configuration({"tidemill.gateway.directory": str(tmp_path)}))
    try:
        assert isinstance(house.gateway.telemetry, Silent)
    finally:
        house.close()
