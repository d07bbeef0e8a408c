"""Databases and Debezium files for the tests of jobs that write into one from the other."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from tidemill.connectors.jdbc.urls import Database

Rows = list[tuple[Any, ...]]


def query(url: str, sql: str) -> Rows:
    """Runs ``sql`` in a transaction of its own; the rows, if there are any."""
    with Database(url).engine.begin() as open:
        return ask(open, sql)


def ask(open: Connection, sql: str) -> Rows:
    result = open.exec_driver_sql(sql)
    return [tuple(row) for row in result] if result.returns_rows else []


def jdbc_table(name: str, columns: str, url: str, **options: str) -> str:
    given = {"connector": "jdbc", "url": url, "table-name": name} | options
    return f"CREATE TABLE {name} ({columns}) WITH ({_listed(given)})"


def debezium_table(name: str, columns: str, path: Path, **options: str) -> str:
    given = {"connector": "filesystem", "path": str(path), "format": "debezium-json"} | options
    return f"CREATE TABLE {name} ({columns}) WITH ({_listed(given)})"


def _listed(options: dict[str, str]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in options.items())


def message(op: str, before: dict[str, Any] | None = None, after: dict[str, Any] | None = None) -> str:
    return json.dumps({"op": op, "before": before, "after": after})


def created(**row: Any) -> str:
    return message("c", after=row)


def deleted(**row: Any) -> str:
    return message("d", before=row)


def updated(row: dict[str, Any], **changes: Any) -> str:
    return message("u", before=row, after=row | changes)


def drop_file(directory: Path, name: str, messages: list[str]) -> None:
    """A file that appears at once and complete."""
    directory.mkdir(exist_ok=True)
    hidden = directory / f".{name}"
    hidden.write_text("".join(f"{m}\n" for m in messages))
    hidden.rename(directory / name)


def wait_for(found: Callable[[], Any], expected: Any, seconds: float = 60) -> None:
    """Asks until the answer is ``expected``; the last answer is in the failure."""
    deadline = time.monotonic() + seconds
    answer = found()
    while answer != expected and time.monotonic() < deadline:
        time.sleep(0.02)
        answer = found()
    assert answer == expected
