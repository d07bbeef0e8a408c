"""Records a session's jobs: a live view while they run, and a history record after their end."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from tidemill.config import history_options
from tidemill.config.option import Configuration
from tidemill.runtime.events import JobEnded, JobEvent
from tidemill.runtime.progress import EpochProgress
from tidemill.session.catalogs.locations import state_directory
from tidemill.session.history.documents import record
from tidemill.session.history.job_metrics import JobMetrics
from tidemill.session.history.records import Records
from tidemill.session.history.watch import JobWatch

_LOGGER = logging.getLogger("tidemill")
_FOLDER = "job-history"
Progress = Callable[[EpochProgress], None]
Event = Callable[[JobEvent], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """``metrics``: counts the jobs; None if they are counted elsewhere."""

    records: Records
    watch: JobWatch = field(default_factory=JobWatch)
    metrics: JobMetrics | None = None

    @property
    def keeps(self) -> bool:
        """Whether ended jobs are recorded, or running jobs only watched."""
        return self.records.most > 0

    def beside(self, on_progress: Progress, on_event: Event) -> tuple[Progress, Event]:
        """Callbacks that record a job's progress and events, and then call ``on_progress`` and
        ``on_event``."""

        def progress(epoch: EpochProgress) -> None:
            self.watch.epoch(epoch)
            if self.metrics is not None:
                self.metrics.epoch(epoch)
            on_progress(epoch)

        def event(happened: JobEvent) -> None:
            self.watch.event(happened)
            if self.metrics is not None:
                self.metrics.event(happened)
            if isinstance(happened, JobEnded):
                self._keep(happened)
            on_event(happened)

        return progress, event

    def _keep(self, ended: JobEnded) -> None:
        """Writes the job's record. If this fails, it warns; the job does not fail."""
        document = record(ended, self.watch.look(ended.job_id))
        try:
            self.records.add(ended.begun, ended.job_id, document)
        except OSError as e:
            _LOGGER.warning("the history of job %s could not be kept: %s", ended.job_id, e)


def own_records(config: Configuration, default: str = "") -> Records:
    """The history of this user's jobs outside a gateway. ``default``: a folder other than the usual one."""
    folder = config.read(history_options.DIRECTORY) or default or os.path.join(state_directory(), _FOLDER)
    return Records(folder, config.read(history_options.MAX_JOBS))
