"""``tidemill kafka abort-pending``: ends transactions that jobs have left open, without Spark."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from tidemill.connectors.registry import connector
from tidemill.errors import ValidationError


def abort_pending(parsed: argparse.Namespace) -> int:
    """One line for each transactional id; with ``--dry-run`` nothing is ended."""
    if bool(parsed.ids) == (parsed.prefix is not None):
        raise ValidationError("Name transactional ids, or give --prefix.")
    connector({"connector": "kafka"})  # says which package is missing
    pending = import_module("tidemill.connectors.kafka.pending")
    given = {**dict(parsed.properties), "bootstrap.servers": parsed.servers}
    for name in parsed.ids or pending.open_ids(given, parsed.prefix):
        if not parsed.dry_run:
            pending.end(given, name)
        sys.stdout.write(f"{name}\n")
    return 0
