"""Which files the driver and all workers share: files at URIs, and local paths that are declared as
shared.

On a cluster, a local path is another folder on each machine. Rows would be read twice or not at all,
and the next epoch would not find its state. So such a path is refused before the job starts.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from dataclasses import dataclass

from tidemill.config.cluster_options import SHARED_FILESYSTEM, TEMPORARY_DIRECTORY
from tidemill.config.execution_options import CHECKPOINT_DIRECTORY
from tidemill.config.option import Configuration
from tidemill.errors import ValidationError
from tidemill.files.systems import is_local, local_path
from tidemill.runtime.spark.settings import is_within_machine


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFiles:
    """``master``: Spark's master. ``declared``: the value of the option. ``temporary``: the folder for
    jobs without a checkpoint directory, or '' for the system's temporary folder."""

    master: str
    declared: str = ""
    temporary: str = ""

    @classmethod
    def of(cls, master: str, config: Configuration) -> SharedFiles:
        return cls(
            master=master,
            declared=config.read(SHARED_FILESYSTEM),
            temporary=config.read(TEMPORARY_DIRECTORY),
        )

    def check(self, location: str, what: str) -> None:
        """ValidationError if ``location`` is not the same on all machines. ``what`` names it in the error."""
        if not self._is_shared(location):
            raise ValidationError(
                f"{what} is '{location}', a path that each machine has for itself: Spark runs on "
                f"'{self.master}'.",
                hint="Give a URI that all machines reach (s3://, hdfs://, ...). Where it is a file system "
                "that the driver and all workers have mounted there, set "
                f"'{SHARED_FILESYSTEM.key}' to 'true', or to the folders that are.",
            )

    def temporary_directory(self) -> str:
        """A new directory for the state of a job without a checkpoint directory."""
        if not self.temporary and is_within_machine(self.master):
            return tempfile.mkdtemp(prefix="tidemill-")
        if not self.temporary:
            raise ValidationError(
                f"A job on '{self.master}' needs a place for its state that driver and workers reach.",
                hint=f"Set '{CHECKPOINT_DIRECTORY.key}' for a job that is to be resumed, or "
                f"'{TEMPORARY_DIRECTORY.key}' for queries that are not.",
            )
        self.check(self.temporary, f"'{TEMPORARY_DIRECTORY.key}'")
        return f"{self.temporary.rstrip('/')}/tidemill-{uuid.uuid4().hex}"

    def _is_shared(self, location: str) -> bool:
        if is_within_machine(self.master) or not is_local(location):
            return True
        declared = self.declared.strip()
        if declared.lower() in ("", "true", "false"):
            return declared.lower() == "true"
        path = os.path.join(local_path(location), "")
        folders = (os.path.join(local_path(folder.strip()), "") for folder in declared.split(","))
        return any(path.startswith(folder) for folder in folders)


ONE_MACHINE = SharedFiles(master="local")
