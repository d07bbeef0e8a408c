"""Receives each statement's end and each epoch, beside the metrics: nothing, or OpenTelemetry."""

from __future__ import annotations

from typing import Protocol

from tidemill.gateway.api import OperationStatus
from tidemill.gateway.service.operation import Operation
from tidemill.runtime.progress import EpochProgress


class Telemetry(Protocol):
    """Any thread may call. Calls return at once and do not raise."""

    def ended(self, operation: Operation, status: OperationStatus) -> None:
        """Called when ``operation`` ends with ``status``."""
        ...

    def epoch(self, progress: EpochProgress) -> None:
        """Called when a job has committed an epoch."""
        ...

    def close(self) -> None:
        """Sends the buffered records."""
        ...


class Silent:
    """A ``Telemetry`` that drops all records."""

    def ended(self, operation: Operation, status: OperationStatus) -> None:
        return None

    def epoch(self, progress: EpochProgress) -> None:
        return None

    def close(self) -> None:
        return None
