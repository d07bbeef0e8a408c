"""What the work of one epoch depends on, beside its exec graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidemill.connectors.api import Offset, Source
from tidemill.files.storage import Storage
from tidemill.runtime.hot_keys import Hot
from tidemill.runtime.spark.kernel import EpochTime, Reports
from tidemill.runtime.spark.late_rows import LateWriter
from tidemill.runtime.stages import Stages
from tidemill.state.slices import Slices


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFacts:
    """``ranges``: (start, end] per source id. ``folder``: the folder of large exchange blocks. ``whole``:
    operators whose rows are not combined before their exchange, and projections that the JVM computes.
    ``hot``: keys whose rows go to all buckets. ``is_small``: one task is to do all of it."""

    sources: dict[str, Source]
    ranges: Mapping[str, tuple[Offset | None, Offset]]
    state_root: Storage
    run_id: str
    state: Slices
    epoch: int
    time: int
    parallelism: int
    report: Reports
    stages: Stages
    event_time: EpochTime = field(default_factory=EpochTime)
    late: LateWriter | None = None
    folder: str | None = None
    whole: frozenset[str] = frozenset()
    hot: Hot = field(default_factory=dict)
    is_small: bool = False
