"""Runs the statements that standard input holds as a JSON list; prints as JSON the seconds of each, by the
clock and of the processors, and the bytes of state that the last one left."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from bench.memory import processor_seconds
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.session.environment import TableEnvironment
from tidemill.state.manifest import read_manifest
from tidemill.state.storage import StateFiles


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = TableEnvironment.create({"execution.checkpointing.dir": folder})
        seconds, processor = [], []
        for statement in json.load(sys.stdin):
            begun, used = time.perf_counter(), processor_seconds(os.getpid())
            environment.execute_sql(statement).wait()
            seconds.append(round(time.perf_counter() - begun, 3))
            processor.append(round(processor_seconds(os.getpid()) - used, 2))
        state = state_bytes(Path(folder))
        print(json.dumps({"seconds": seconds, "processor": processor, "state": state}))


def state_bytes(folder: Path) -> int:
    """Bytes of the files that the last commit of the folder's newest job names."""
    jobs = [path.parent for path in folder.glob("**/job.json")]
    checkpoint = CheckpointDirectory(Storage(str(max(jobs, key=lambda job: job.stat().st_mtime))))
    commit = checkpoint.last_commit()
    if commit is None:
        return 0
    storage = StateFiles.open(checkpoint.state_root)
    names = {s.manifest for parts in commit.slices.values() for part in parts.values() for s in part}
    return sum(read_manifest(storage, name).size for name in names)


if __name__ == "__main__":
    main()
