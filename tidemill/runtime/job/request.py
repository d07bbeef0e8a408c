"""What a job is asked to run with, and the Spark session that follows from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidemill.catalog.table import CatalogTable
from tidemill.config.execution_options import (
    PARALLELISM,
)
from tidemill.config.option import Configuration
from tidemill.config.secrets import shown_value
from tidemill.errors import ValidationError
from tidemill.files.fence import OPEN, Fence
from tidemill.runtime.events import JobEvent
from tidemill.runtime.progress import EpochProgress
from tidemill.runtime.shared_files import SharedFiles
from tidemill.runtime.spark.session import job_session, time_zone
from tidemill.state.slices import KEY_GROUPS


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What every job needs.

    - ``frames``: registered DataFrames by key.
    - ``text``: collected values are texts as of CAST(x AS STRING), except booleans and plain numbers.
    - ``group``: the name under which Spark's work for a batch statement can be canceled.
    - ``recorded``: ``on_event`` wants to know how a job ran. ``heard``: ``on_event`` has a listener.
    """

    application: SparkSession
    config: Configuration
    frames: Mapping[str, DataFrame]
    name: str
    zone: str
    text: bool = False
    group: str = ""
    recorded: bool = False
    has_listener: bool = True
    checkpoint_directory: str = ""
    on_progress: Callable[[EpochProgress], None] = lambda _: None
    on_event: Callable[[JobEvent], None] = lambda _: None
    fault: Callable[[str], None] = lambda _: None
    clock: Callable[[], float] = time.time
    late_table: CatalogTable | None = None
    fence: Fence = OPEN
    statement: str = ""
    """As it may be shown."""
    query: Mapping[str, Any] = field(default_factory=dict)
    """What the job's record keeps of its INSERTs: enough to plan them again."""

    @property
    def shown_options(self) -> dict[str, str]:
        return {key: shown_value(key, value) for key, value in self.config.items()}

    @property
    def shared(self) -> SharedFiles:
        return SharedFiles.of(self.application.sparkContext.master or "", self.config)


def parallelism(request: JobRequest) -> int:
    wanted = request.config.read(PARALLELISM)
    if not 0 <= wanted <= KEY_GROUPS:
        raise ValidationError(
            f"'{PARALLELISM.key}' is {wanted}; it must be between 1 and {KEY_GROUPS}, or 0 for all cores"
        )
    return wanted if wanted > 0 else min(request.application.sparkContext.defaultParallelism, KEY_GROUPS)


def epoch_session(request: JobRequest, partitions: int) -> SparkSession:
    """The Spark session of a job's epochs."""
    return job_session(
        request.application,
        settings={
            **time_zone(request.zone),
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.shuffle.partitions": str(partitions),
        },
    )
