"""Nexmark's events as three CSV files, and scripts over them that any engine of Flink's SQL runs.

``python -m bench.nexmark FOLDER [--events N]`` writes bid.csv, auction.csv and person.csv, flat, times as
text; ``script(name, folder)`` gives a query of ``tidemill.connectors.nexmark.queries`` over them. The
same number of events gives the same files. Cost: about 2 µs an event, 0.2 KB of disk.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from tidemill.connectors.generated import BLOCK_ROWS
from tidemill.connectors.nexmark import scripts
from tidemill.connectors.nexmark.connector import generator

TABLES = ("person", "auction", "bid")
NAMES = scripts.names()


def export(events: int, folder: Path, rate: int = 0) -> Path:
    """The folder of the files of the first ``events`` events, written once under ``folder``. ``rate``: how
    many there are in a second of event time; 0: as the generator makes them."""
    target = folder / (f"nexmark-{events}-{rate}" if rate else f"nexmark-{events}")
    if target.exists():
        return target
    partial = target.with_suffix(".partial")
    partial.mkdir(parents=True, exist_ok=True)
    rates = {f"{which}-event.rate": str(rate) for which in ("first", "next") if rate}
    made = generator({"events.num": str(events), **rates})
    with ExitStack() as stack:
        files = {name: stack.enter_context(open(partial / f"{name}.csv", "wb")) for name in TABLES}
        for number in range(-(-events // BLOCK_ROWS)):
            rows = made.block(number, 0).slice(0, events - number * BLOCK_ROWS)
            for name, file in files.items():
                csv.write_csv(flat(rows, name), file, _PLAIN)
    partial.rename(target)
    return target


_PLAIN = csv.WriteOptions(include_header=False, quoting_style="none")


def flat(rows: pa.Table, name: str) -> pa.Table:
    """The events of one kind, their fields as columns, times in milliseconds as they are declared."""
    events = rows.column(name)
    table = pa.Table.from_struct_array(events.filter(pc.is_valid(events)))
    schema = pa.schema(
        [f.with_type(pa.timestamp("ms")) if pa.types.is_timestamp(f.type) else f for f in table.schema]
    )
    return table.cast(schema)


def script(name: str, folder: Path) -> str:
    """The query ``name`` (q0, q1, ...) with its sink, over the files in ``folder``."""
    return f"{scripts.file_declaration(str(folder))}\n{scripts.query(name)}"


def title(name: str) -> str:
    """The name of a query and the words behind it in the first line of its file: "q18, last bids"."""
    return scripts.query(name).removeprefix("-- ").split(":")[0]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.nexmark", description="Writes Nexmark's events.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=10_000_000)
    parsed = parser.parse_args()
    sys.stdout.write(f"{export(parsed.events, parsed.folder)}\n")


if __name__ == "__main__":
    main()
