"""Takes away the state files of the operators an epoch touched that its commit does not name."""

from __future__ import annotations

from pathlib import Path

from tidemill.runtime.checkpoint import EpochCommit
from tidemill.runtime.spark.kernel import Report
from tidemill.state.cleanup import remove_unnamed_files


def remove_unnamed(state_root: Path, report: Report, commit: EpochCommit) -> None:
    """Cleans the (operator, partition) directories that ``report`` says were written.

    A crash before this step leaves files behind; the next epoch that touches the partition, or the
    next start of the job, removes them.
    """
    for task in report.values():
        manifest = commit.manifests.get(task["operator"], {}).get(str(task["partition"]))
        if manifest is not None:
            remove_unnamed_files(str(state_root), task["operator"], task["partition"], [manifest])
