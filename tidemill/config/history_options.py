"""What is kept of jobs that have ended."""

from __future__ import annotations

from tidemill.config.option import Option

DIRECTORY = Option(
    key="tidemill.history.directory",
    kind=str,
    default="",
    own=True,
    doc="The folder for the history of ended jobs, with a file for each run. Unset: `job-history` "
    "below `~/.local/state/tidemill`, or below the gateway's directory.",
)
MAX_JOBS = Option(
    key="tidemill.history.max-jobs",
    kind=int,
    default=1000,
    least=0,
    own=True,
    doc="How many runs are kept, in a gateway for each user; 0 keeps none.",
)
OPTIONS = (DIRECTORY, MAX_JOBS)
