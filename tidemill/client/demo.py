"""``make demo``: a live changelog, its final table, a job killed with SIGKILL and resumed, a gateway.

    python -m tidemill.client.demo [--rows N]

All files are made in a temporary folder that goes at the end. Takes about a minute.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from tidemill.changelog.rowkind import RowKind
from tidemill.client.demo_gateway import show_gateway
from tidemill.runtime.progress import EpochProgress
from tidemill.session.environment import TableEnvironment
from tidemill.session.result import TableResult
from tidemill.session.rows.pandas_frames import folded

COUNTRIES = ("Brazil", "France", "India", "Japan", "Kenya", "Norway")
EPOCHS = 5
USERS = 40_000
KILL_AFTER_EPOCHS = 2
DEADLINE_SECONDS = 120
COLOURS = {
    RowKind.INSERT: "bold green",
    RowKind.UPDATE_BEFORE: "dim red",
    RowKind.UPDATE_AFTER: "yellow",
    RowKind.DELETE: "red",
}
VISITS = """\
CREATE TABLE visits (user_id BIGINT, country STRING, page STRING)
  WITH ('connector' = 'filesystem', 'path' = '{folder}/visits.csv', 'format' = 'csv')"""
TOTALS = """\
CREATE TABLE totals (country STRING, visitors BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '{folder}/totals', 'format' = 'debezium-json')"""
QUERY = """\
SELECT country, SUM(n) AS visitors
FROM (SELECT country, MOD(user_id, 16) AS bucket, COUNT(DISTINCT user_id) AS n
      FROM visits GROUP BY country, MOD(user_id, 16))
GROUP BY country"""


def main() -> int:
    """The exit status: 0 where the resumed job's table equals the uninterrupted one's."""
    parser = argparse.ArgumentParser(prog="python -m tidemill.client.demo", description="Shows Tidemill.")
    parser.add_argument("--rows", type=int, default=30_000, help="visits to make up (30000)")
    rows = parser.parse_args().rows
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="tidemill-demo-") as folder:
        write_visits(Path(folder) / "visits.csv", rows)
        environment = session(folder, rows)
        expected = show_changelog(console, environment, rows)
        show_table(console, "The table after the last epoch", expected)
        resumed = show_recovery(console, Path(folder), environment, rows)
        status = say_outcome(console, expected, resumed)
        show_gateway(console, Path(folder))
    console.print("Next: docs/tutorial.md, docs/gateway.md, or `tidemill sql` for a prompt.")
    return status


def write_visits(path: Path, rows: int) -> None:
    """Made-up visits, the same on every run."""
    source = random.Random(7)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(rows):
            user = int(USERS * source.random() ** 2)
            country = COUNTRIES[int(len(COUNTRIES) * (user % 97 / 97) ** 1.5)]
            file.write(f"{user},{country},{source.choice(('home', 'cart'))}\n")


def session(folder: str, rows: int, epochs: int = EPOCHS) -> TableEnvironment:
    environment = TableEnvironment.create({"tidemill.epoch.max-rows": str(rows_per_epoch(rows, epochs))})
    environment.execute_sql(VISITS.format(folder=folder))
    environment.execute_sql(TOTALS.format(folder=folder))
    return environment


def rows_per_epoch(rows: int, epochs: int = EPOCHS) -> int:
    return max(1, -(-rows // epochs))


def show_changelog(
    console: Console, environment: TableEnvironment, rows: int, epochs: int = EPOCHS
) -> dict[str, int]:
    """Part 1; the final table."""
    console.rule("[bold]1. A live changelog")
    console.print(
        f"{rows:,} visits in {epochs} epochs. The query counts distinct visitors per country\n"
        "and bucket, then adds the buckets up: an aggregation over an aggregation.\n"
    )
    console.print(Syntax(QUERY, "sql", background_color="default"))
    console.print()
    done: list[EpochProgress] = []
    environment.context.on_progress = done.append
    result = environment.execute_sql(QUERY)
    environment.context.on_progress = lambda _: None
    return live(console, result, done)


def live(console: Console, result: TableResult, epochs: list[EpochProgress]) -> dict[str, int]:
    """Prints every change as its epoch commits; folds them."""
    changes = []
    for kind, (country, visitors) in result.changes():
        changes.append((kind, (country, visitors)))
        if len(changes) == 1:
            console.print("[dim] op  country   visitors[/dim]")
        console.print(Text(f" {kind.short}  {country:<8} {visitors:>9,}", style=COLOURS[kind]))
    seconds = sum(e.seconds for e in epochs)
    console.print(
        f"\n{len(epochs)} epochs, {len(changes)} changes, {seconds:.1f} s. A country changes once per\n"
        "epoch: no total is ever shown that only half of an epoch's visits went into.\n"
    )
    return dict(folded(result.fields, changes))


def show_table(console: Console, title: str, totals: dict[str, int]) -> None:
    table = Table(title=title, title_justify="left", min_width=len(title) + 2)
    table.add_column("country")
    table.add_column("visitors", justify="right")
    for country, visitors in sorted(totals.items()):
        table.add_row(country, f"{visitors:,}")
    console.print(table)


def show_recovery(console: Console, folder: Path, environment: TableEnvironment, rows: int) -> dict[str, int]:
    """Part 2: the same query as an INSERT in a process of its own, killed and started again."""
    console.rule("[bold]2. A job is killed and resumes")
    script = folder / "job.sql"
    script.write_text(
        f"SET 'tidemill.epoch.max-rows' = '{rows_per_epoch(rows)}';\n{VISITS.format(folder=folder)};\n"
        f"{TOTALS.format(folder=folder)};\nINSERT INTO totals\n{QUERY};\n",
        encoding="utf-8",
    )
    checkpoint = folder / "checkpoint"
    console.print("$ tidemill run job.sql --checkpoint-dir checkpoint")
    last = kill_after_epochs(start(script, checkpoint), checkpoint)
    console.print(f"[red]  SIGKILL after epoch {last} was committed: driver, JVM and workers are gone.[/red]")
    console.print("$ tidemill run job.sql --checkpoint-dir checkpoint   [dim]# the same again[/dim]")
    begun = time.monotonic()
    status = start(script, checkpoint).wait(DEADLINE_SECONDS)
    done = newest_epoch(checkpoint)
    console.print(
        f"[green]  It went on with epoch {last + 1} and ended after epoch {done}, "
        f"{time.monotonic() - begun:.1f} s, exit status {status}.[/green]\n"
    )
    result = environment.execute_sql("SELECT country, visitors FROM totals")
    return dict(folded(result.fields, result.changes()))


def start(script: Path, checkpoint: Path) -> subprocess.Popen[bytes]:
    """A job in a process group of its own, so that its JVM can be killed with it."""
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tidemill.client.main",
            "run",
            str(script),
            "--checkpoint-dir",
            str(checkpoint),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_after_epochs(process: subprocess.Popen[bytes], checkpoint: Path) -> int:
    """SIGKILL once enough epochs are committed; the last one that was. RuntimeError if it ended before."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while newest_epoch(checkpoint) < KILL_AFTER_EPOCHS:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the job did not reach epoch {KILL_AFTER_EPOCHS} (status {process.poll()})")
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return newest_epoch(checkpoint)


def newest_epoch(checkpoint: Path) -> int:
    """The number of the newest commit record, 0 where there is none."""
    names = (p.name.partition(".")[0] for p in (checkpoint / "epochs").glob("*.commit.json"))
    return max((int(n) for n in names if n.isdigit()), default=0)


def say_outcome(console: Console, expected: dict[str, int], resumed: dict[str, int]) -> int:
    show_table(console, "What the killed and resumed job wrote", resumed)
    if resumed != expected:
        console.print("[bold red]The two tables differ. This is a bug: please report it.[/bold red]")
        return 1
    console.print(
        "[bold]What you just saw.[/bold] Flink SQL ran on Spark as a stream of epochs. Each epoch\n"
        "changed every result at most once and was committed as a whole. The killed job\n"
        "found its last commit, read on from the offsets in it, and its files hold\n"
        "[bold green]exactly the same table[/bold green]: nothing lost, nothing twice.\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
