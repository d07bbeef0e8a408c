"""State with small budgets, so that a few hundred rows make several layers, slices and half-done merges.

A kernel's task takes them along to its worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pyarrow as pa

from tidemill.runtime.spark.epoch import tasks
from tidemill.runtime.spark.exchange import Received
from tidemill.runtime.spark.kernel import KernelTask
from tidemill.state.spine import SpineOptions
from tidemill.state.store import StateStore

SMALL = SpineOptions(fuel=64, fuel_per_row=1, slice_rows=16, calm_layers=3)


class SmallStateTask(KernelTask):
    """A kernel's task whose state is merged in small steps."""

    __slots__ = ()

    def run(self, blocks: tuple[Received, ...], partition: int) -> tuple[pa.Table | None, int]:
        with patch.dict(StateStore.open.__func__.__kwdefaults__, options=SMALL):  # type: ignore[attr-defined]  # of a classmethod
            return KernelTask.run(self, blocks, partition)


@contextmanager
def small_state() -> Iterator[None]:
    """Jobs that start here have it."""
    with patch.object(tasks, "KernelTask", SmallStateTask):
        yield
