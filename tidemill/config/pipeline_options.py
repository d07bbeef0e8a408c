"""What a job is called and how it shows its progress."""

from __future__ import annotations

from tidemill.config.option import Option

NAME = Option(
    key="pipeline.name",
    kind=str,
    default="",
    doc="The job's name in progress lines and in its checkpoint. Unset: a name that contains the "
    "sink's name.",
)
OPTIONS = (NAME,)
