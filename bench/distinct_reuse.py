"""Distinct values that keys share beside a set for each key: state, and time of the processors.

``python -m bench.distinct_reuse [--ids N] [--case NAME] [--repeat N]``. Visitors come by channels, in any
order: most by all of them (overlap 0.9, the others by one), or each by one (0). Of either plan, with
``table.optimizer.distinct-state-reuse`` OFF and AUTO, in turn: the bytes of state files, which have what was
replaced until they are merged, on average over the second half of the epochs, without the last one, which
ends all windows; and the least processor time of the runs, all processes together. Runs differ by a tenth
on a machine that others use.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.memory import processor_seconds
from tidemill.runtime.progress import EpochProgress
from tidemill.session.environment import TableEnvironment

EPOCHS = 16
OVERLAPS = (0.9, 0.0)
MODES = ("OFF", "AUTO")
_TICKS = "TABLE known, DESCRIPTOR(ts), "


@dataclass(frozen=True, slots=True)
class Case:
    """``keys``: how the channels are called."""

    keys: tuple[str, ...]
    kind: str = "STRING"
    windows: str = ""

    def query(self) -> str:
        columns = "k, window_start, window_end" if self.windows else "k"
        return f"SELECT {columns}, COUNT(DISTINCT id) AS n FROM {self.windows or 'known'} GROUP BY {columns}"

    def view(self) -> str:
        """Of the rows, which are all of these channels."""
        listed = ", ".join(self.keys if self.kind != "STRING" else (f"'{k}'" for k in self.keys))
        return f"CREATE TEMPORARY VIEW known AS SELECT * FROM visits WHERE k IN ({listed})"


CHANNELS = ("A", "B", "other")
MANY = tuple(f"channel {n}" for n in range(100))
CASES = {
    "3 text keys": Case(CHANNELS),
    "3 INT keys": Case(("1", "2", "3"), "INT"),
    "3 long text keys": Case(("paid-search/brand", "paid-search/other", "newsletter/weekly")),
    "100 text keys": Case(MANY),
    "TUMBLE 1 h": Case(CHANNELS, windows=f"TUMBLE({_TICKS}INTERVAL '1' HOUR)"),
    "HOP 1 h by 30 min": Case(CHANNELS, windows=f"HOP({_TICKS}INTERVAL '30' MINUTE, INTERVAL '1' HOUR)"),
    "CUMULATE 1 h by 5 min": Case(
        CHANNELS, windows=f"CUMULATE({_TICKS}INTERVAL '5' MINUTE, INTERVAL '1' HOUR)"
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--ids", type=int, default=300_000, help="visits of a case over the share that overlaps"
    )
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    print("| case | overlap | rows | state, plain | shared | smaller by | seconds, plain | shared | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in args.case or CASES:
            for overlap in OVERLAPS:
                print(measured(Path(folder), name, overlap, args.ids, args.repeat), flush=True)


def measured(folder: Path, name: str, overlap: float, ids: int, repeat: int) -> str:
    case = CASES[name]
    rows = write(folder / "visits", case.keys, overlap, ids)
    states: dict[str, int] = {}
    seconds: dict[str, list[float]] = {mode: [] for mode in MODES}
    for turn in range(repeat + 1):
        for mode in MODES:
            state, used = run(folder / "visits", case, mode, rows)
            states[mode] = state
            seconds[mode] += [used] * (turn > 0)
    plain, shared = (min(seconds[mode]) for mode in MODES)
    off, auto = (states[mode] for mode in MODES)
    cells = (
        *(name, f"{overlap:.0%}", f"{rows:,}"),
        *(f"{off / 1e6:.1f} MB", f"{auto / 1e6:.1f} MB", f"{off / auto:.2f}"),
        *(f"{plain:.1f}", f"{shared:.1f}", f"{shared / plain:.2f}"),
    )
    return f"| {' | '.join(cells)} |"


def write(file: Path, keys: tuple[str, ...], overlap: float, ids: int) -> int:
    """Visits of ``ids`` in any order, within an hour; how many there are. Of many channels fewer visitors."""
    if len(keys) > len(CHANNELS):
        ids //= 10
    common = int(ids * overlap)
    rows = [(k, i) for k in keys for i in range(common)]
    rows += [(keys[i % len(keys)], i) for i in range(common, ids)]
    random.Random(1).shuffle(rows)
    with file.open("w") as out:
        for place, (k, i) in enumerate(rows):
            second = place * 3600 // len(rows)
            out.write(f"{k},{i},2025-01-01 00:{second // 60:02d}:{second % 60:02d}\n")
    return len(rows)


def run(file: Path, case: Case, mode: str, rows: int) -> tuple[int, float]:
    environment = TableEnvironment.create(
        {
            "table.optimizer.distinct-state-reuse": mode,
            "parallelism.default": "2",
            "tidemill.epoch.max-rows": str(-(-rows // EPOCHS)),
        }
    )
    seen: list[EpochProgress] = []
    environment.context.on_progress = seen.append
    environment.execute_sql(
        f"CREATE TABLE visits (k {case.kind}, id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
        f"WITH ('connector' = 'filesystem', 'path' = '{file}', 'format' = 'csv')"
    )
    environment.execute_sql(case.view())
    before = processor_seconds(os.getpid())
    with environment.execute_sql(case.query()).collect() as found:
        assert list(found)
    state = statistics.mean(p.state_bytes for p in seen[EPOCHS // 2 : EPOCHS - 1])
    return int(state), processor_seconds(os.getpid()) - before


if __name__ == "__main__":
    main()
