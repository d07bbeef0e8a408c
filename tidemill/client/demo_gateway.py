"""The demo's third part: a gateway starts, a client connects, a console can be opened in a browser."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tidemill.changelog.rowkind import RowKind
from tidemill.client.folding import Folding
from tidemill.client.gateway_client import GatewayClient

_LISTENING = "Listening on "
_SECONDS = 30.0
_TABLES = (
    """CREATE TABLE clicks (page INT, spent DECIMAL(6, 2)) WITH ('connector' = 'datagen',
  'rows-per-second' = '50', 'fields.page.min' = '1', 'fields.page.max' = '5')""",
    "CREATE TABLE pages (page INT, clicks BIGINT, spent DECIMAL(38, 2)) WITH ('connector' = 'blackhole')",
)
QUERY = "SELECT page, COUNT(*) AS clicks, SUM(spent) AS spent FROM clicks GROUP BY page"
CHANGES = 60


def show_gateway(console: Console, folder: Path) -> None:
    """Ends the gateway when its user has pressed Enter, or at once where nobody sits there."""
    console.rule("[bold]3. A gateway, a client, a console")
    console.print("$ tidemill gateway --port 0")
    with gateway(folder) as address:
        console.print(f"  {_LISTENING}{address}\n$ tidemill sql --gateway {address}")
        with GatewayClient(address).open(name="demo") as client:
            for statement in _TABLES:
                client.execute(statement)
            job = client.execute(f"INSERT INTO pages {QUERY}").job_id
            console.print(f"  tidemill> INSERT INTO pages ...;\n  Job ID: {job}\n  tidemill> {QUERY};")
            console.print(first_changes(client))
        console.print(
            "The query has ended with its session, the job goes on.\n"
            f"[bold]The console is at {address}[/bold]: live tables and charts, jobs with their plans."
        )
        wait_for_enter(console)


def wait_for_enter(console: Console) -> None:
    """Returns at once if nobody is there to press it, and at the end of input."""
    if sys.stdin is None or sys.stdin.closed or not sys.stdin.isatty():
        return
    with suppress(EOFError):
        console.input("Enter ends the gateway. ")


@contextmanager
def gateway(folder: Path) -> Iterator[str]:
    """Its address. RuntimeError where it does not start."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tidemill.client.main", "gateway", "--port", "0"),
            *("-D", f"tidemill.gateway.directory={folder / 'gateway'}"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        said = process.stdout.readline() if process.stdout is not None else ""
        if not said.startswith(_LISTENING):
            raise RuntimeError(f"the gateway did not start: {said or 'it said nothing'}")
        yield said.removeprefix(_LISTENING).strip()
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def first_changes(client: GatewayClient) -> Table:
    """What the query's first changes make."""
    answer = client.execute(QUERY, row_format="PLAIN_TEXT")
    rows = Folding(1_000)
    for _, (kind, values) in zip(range(CHANGES), answer.rows, strict=False):
        rows.change(RowKind[kind], tuple(values))
    client.cancel()
    table = Table(title=f"The table after {CHANGES} changes", title_justify="left", min_width=34)
    for name in ("page", "clicks", "spent"):
        table.add_column(name, justify="right")
    for row in sorted(rows.rows):
        table.add_row(*row)
    return table
