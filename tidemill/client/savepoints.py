"""``tidemill savepoint``: creates savepoints of running jobs, and reads savepoints, without Spark."""

from __future__ import annotations

import argparse
import datetime as dt
import sys

from tidemill.client.jobs import opened, own_job, whole_id
from tidemill.config.execution_options import SAVEPOINT_DIRECTORY
from tidemill.errors import ValidationError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.savepoint import Savepoint
from tidemill.runtime.checkpoint.savepoint_export import export_savepoint, import_savepoint
from tidemill.runtime.checkpoint.savepoint_report import differences, parts, savepoints_in


def create(parsed: argparse.Namespace) -> int:
    """Creates a savepoint of a job of this user's processes, or of a gateway; prints the savepoint's path."""
    own = own_job(parsed)
    if own is not None:
        if not (parsed.path or parsed.savepoint_dir):
            raise ValidationError("A savepoint of this job needs a place: --path or --savepoint-dir.")
        sys.stdout.write(f"{own.create_savepoint(parsed.savepoint_dir, parsed.path)}\n")
        return 0
    options = {SAVEPOINT_DIRECTORY.key: parsed.savepoint_dir} if parsed.savepoint_dir else {}
    with opened(parsed, options) as client:
        job_id = whole_id(parsed.job_id, [row[0] for _, row in client.execute("SHOW JOBS").rows])
        path = f"{_quoted(parsed.path)} " if parsed.path else ""
        for _, (place,) in client.execute(f"CREATE SAVEPOINT {path}FOR JOB {_quoted(job_id)}").rows:
            sys.stdout.write(f"{place}\n")
    return 0


def list_all(parsed: argparse.Namespace) -> int:
    """Prints a line per savepoint: time, job, epoch, bytes, path; oldest first."""
    for savepoint in savepoints_in(Storage(parsed.directory)):
        created = dt.datetime.fromtimestamp(savepoint.created / 1000).isoformat(" ", "seconds")
        sys.stdout.write(
            f"{created}  {savepoint.identity.job_id}  {savepoint.epoch}  {savepoint.size} "
            f" {savepoint.where}\n"
        )
    return 0


def describe(parsed: argparse.Namespace) -> int:
    """Prints a line per part. With ``--verify`` it reads every file and checks its checksum."""
    savepoint = Savepoint.open(Storage(parsed.place))
    for part in parts(savepoint):
        counted = "" if part.rows is None else f"  {part.rows} rows"
        sized = "" if part.size is None else f"  {part.size} bytes"
        sys.stdout.write(f"{part.kind:<8}  {part.id}  {part.description}{counted}{sized}\n")
    if parsed.verify:
        savepoint.check_whole()
        sys.stdout.write("Every file is as it was written.\n")
    return 0


def diff(parsed: argparse.Namespace) -> int:
    """Prints the differences of two savepoints. As with ``diff``, the status is 1 if there are any."""
    differing = differences(*(Savepoint.open(Storage(place)) for place in (parsed.first, parsed.second)))
    for difference in differing:
        sys.stdout.write(
            f"{difference.kind:<8}  {difference.id}  {difference.before or '(none)'} ->"
            f" {difference.after or '(none)'}\n"
        )
    return 1 if differing else 0


def export(parsed: argparse.Namespace) -> int:
    export_savepoint(Savepoint.open(Storage(parsed.place)), Storage(parsed.target))
    return 0


def import_back(parsed: argparse.Namespace) -> int:
    import_savepoint(Storage(parsed.place), Storage(parsed.target))
    return 0


def delete(parsed: argparse.Namespace) -> int:
    for place in parsed.places:
        Savepoint.open(Storage(place)).remove()
    return 0


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
