"""Epochs of an aggregation in windows whose rows come from several tasks, of which some combine theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from tests.operators.timed_epochs import TimedEpochs, pieces
from tidemill.changelog.columns import Ints
from tidemill.changelog.watermarks import END, NONE, Control, Prefix, Running
from tidemill.operators.window.aggregate import WindowAggregateSpec


class Timed(Protocol):
    @property
    def time(self) -> int: ...


R = TypeVar("R", bound=Timed)


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """``cuts``: where epochs end; ``tasks``: where the tasks of each begin; ``combines``: a bit for each that
    combines its rows. Watermarks are ``delay`` behind the rows, and pass each ``interval``; all wait for
    another source, which is ``lag`` behind theirs and has no rows."""

    delay: int
    interval: int
    cuts: list[int]
    tasks: list[int]
    combines: int
    lag: int

    def marks(self, rows: Sequence[Timed], running: Running) -> Ints:
        """The watermark before each row."""
        return running.before(np.array([r.time - self.delay for r in rows], np.int64))

    def outputs(
        self,
        kernel: TimedEpochs,
        spec: WindowAggregateSpec,
        rows: Sequence[R],
        table_of: Callable[[Sequence[R], Ints], pa.Table],
    ) -> Iterator[pa.Table]:
        """What ``spec`` gives in each epoch; ``table_of`` makes its input of rows and their watermarks."""
        reached = NONE
        for first, behind in pieces(len(rows), self.cuts):
            raw: list[tuple[int, pa.Table]] = []
            combined: list[tuple[int, pa.Table]] = []
            controls: list[Control] = []
            for task, (start, stop) in enumerate(pieces(behind - first, self.tasks)):
                own = rows[first + start : first + stop]
                running = Running(interval=self.interval)
                table = table_of(own, self.marks(own, running))
                controls.append(Control(origin="s", task=task, mark=running.mark, interval=self.interval))
                if spec.combinable and self.combines >> task & 1 and own:
                    combined.append((task, spec.combine(table)))
                else:
                    raw.append((task, table))
            prefix = Prefix.over(controls, {"s": reached})
            reached = prefix.marks.get("s", reached)
            whole, parts = ([_lifted(t, task, prefix) for task, t in found] for found in (raw, combined))
            kernel.spec, table = spec.merged(whole, parts) if parts else (spec, pa.concat_tables(whole))
            waited = reached if reached == NONE else reached - self.lag
            yield kernel.step(table, mark=END if behind == len(rows) else waited)


def _lifted(table: pa.Table, task: int, prefix: Prefix) -> pa.Table:
    marks = prefix.lifted(table.column("$wm").to_numpy(), task)
    return table.set_column(table.schema.get_field_index("$wm"), "$wm", pa.array(marks))
