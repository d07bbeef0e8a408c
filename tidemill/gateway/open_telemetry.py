"""OpenTelemetry: a span per statement and per epoch, and the metrics that Prometheus reads.

A thread of the SDK sends them to a collector by OTLP over HTTP, and drops records that it cannot send. Except
for the endpoint, OpenTelemetry's own variables ``OTEL_*`` configure it (headers, resource, interval). The
module is loaded only if it is configured; the extra ``otel`` installs its packages.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode

from tidemill.gateway.service.metrics import FAMILIES

if TYPE_CHECKING:
    from tidemill.gateway.api import OperationStatus
    from tidemill.gateway.service.operation import Operation
    from tidemill.gateway.service.service import Gateway
    from tidemill.runtime.progress import EpochProgress

_NAME = "tidemill"


class OpenTelemetry:
    """A ``Telemetry`` of ``gateway`` that sends spans to ``spans``; ``reader`` reads its metrics."""

    def __init__(self, gateway: Gateway, spans: SpanProcessor, reader: MetricReader) -> None:
        resource = Resource.create({SERVICE_NAME: _NAME})
        self._traces = TracerProvider(resource=resource)
        self._traces.add_span_processor(spans)
        self._tracer = self._traces.get_tracer(_NAME)
        self._meters = MeterProvider(metric_readers=[reader], resource=resource)
        meter = self._meters.get_meter(_NAME)
        for name in FAMILIES:
            make = (
                meter.create_observable_counter if name.endswith("_total") else meter.create_observable_gauge
            )
            make(name, callbacks=[partial(_observed, gateway, name)])

    def ended(self, operation: Operation, status: OperationStatus) -> None:
        attributes = {
            "db.query.text": operation.statement,
            "tidemill.operation": operation.handle,
            "tidemill.status": status.value,
            "tidemill.job": "" if operation.outcome is None else operation.outcome.info.job_id,
        }
        error = "" if operation.error is None else str(operation.error)
        self._span("statement", int(operation.submitted.timestamp() * 1e9), attributes, error)

    def epoch(self, progress: EpochProgress) -> None:
        attributes = {
            "tidemill.job": progress.job_id,
            "tidemill.epoch": progress.epoch,
            "tidemill.rows_in": progress.rows_in,
            "tidemill.rows_out": progress.rows_out,
            "tidemill.late_rows": progress.late,
            "tidemill.state_bytes": progress.state_bytes,
        }
        self._span("epoch", time.time_ns() - int(progress.seconds * 1e9), attributes, "")

    def close(self) -> None:
        self._traces.shutdown()
        self._meters.shutdown()

    def _span(self, name: str, begun: int, attributes: dict[str, Any], error: str) -> None:
        """Sends a span that ends now. ``error``: why it failed, '' for success."""
        non_empty = {key: value for key, value in attributes.items() if value != ""}
        span = self._tracer.start_span(name, start_time=begun, attributes=non_empty)
        if error:
            span.set_status(Status(StatusCode.ERROR, error))
        span.end()


def _observed(gateway: Gateway, family: str, _: CallbackOptions) -> Iterable[Observation]:
    for name, labels, value in gateway.metrics.samples(gateway.now()):
        if name == family:
            yield Observation(value, dict(labels))


def to_collector(gateway: Gateway, endpoint: str) -> OpenTelemetry:
    """A telemetry that sends to the collector at ``endpoint``, such as ``http://127.0.0.1:4318``."""
    base = endpoint.rstrip("/")
    return OpenTelemetry(
        gateway,
        BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{base}/v1/traces")),
        PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=f"{base}/v1/metrics")),
    )
