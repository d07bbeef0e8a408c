"""Who hears of each statement's end and each epoch, beside the metrics: nobody, or OpenTelemetry."""

from __future__ import annotations

from typing import Protocol

from tidemill.gateway.api import OperationStatus
from tidemill.gateway.service.operation import Operation
from tidemill.runtime.progress import EpochProgress


class Telemetry(Protocol):
    """Any thread may tell; what is told returns at once and does not raise."""

    def ended(self, operation: Operation, status: OperationStatus) -> None:
        """``operation`` ends now, with ``status``."""
        ...

    def epoch(self, progress: EpochProgress) -> None:
        """A job has committed an epoch."""
        ...

    def close(self) -> None:
        """Sends what was told and is still here."""
        ...


class Silent:
    """Nobody hears of anything."""

    def ended(self, operation: Operation, status: OperationStatus) -> None:
        return None

    def epoch(self, progress: EpochProgress) -> None:
        return None

    def close(self) -> None:
        return None
