"""Times the cases on Tidemill and on real Flink 2.3.0, same files, one run, and prints one table.

``python -m bench.compare [--rows N] [--case NAME] [--repeat N] [--patience N] [--setup NAME] [--no-flink]``.
Flink runs through ``$FLINK_ORACLE`` (default ``../shared/oracle/oracle``), best of four: heap or RocksDB
state, mini-batch on or off, or of those that ``--setup`` names; checkpoints every 5 s to disk, parallelism 2.
Times are of the INSERT statement, submission to end of job, after one over a small file in the same process,
the best of ``--repeat``: compare ratios, not seconds. An INSERT of Flink's is ended after ``--patience``
times our seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.case import Case
from bench.cases import cases
from bench.flink_checkpoints import largest_checkpoint
from bench.memory import peak_tree_memory
from bench.plain_spark import geometric_mean

ROOT = Path(__file__).resolve().parent.parent
ORACLE = os.environ.get("FLINK_ORACLE", str(ROOT / ".." / "shared" / "oracle" / "oracle"))
MINI_BATCH = (
    "SET 'table.exec.mini-batch.enabled' = 'true';\n"
    "SET 'table.exec.mini-batch.allow-latency' = '2 s';\n"
    "SET 'table.exec.mini-batch.size' = '100000';\n"
)


@dataclass(frozen=True, slots=True)
class FlinkSetup:
    backend: str
    mini_batch: bool

    @property
    def label(self) -> str:
        return f"{self.backend}{' +mini-batch' if self.mini_batch else ''}"


SETUPS = tuple(FlinkSetup(b, m) for b in ("hashmap", "rocksdb") for m in (True, False))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--case", action="append")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--patience", type=float, default=5)
    parser.add_argument("--setup", action="append", choices=[setup.label for setup in SETUPS])
    parser.add_argument("--no-flink", action="store_true")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "tidemill-bench")
    args = parser.parse_args()
    print("| " + " | ".join(HEADINGS) + " |")
    print("|" + "---|" * len(HEADINGS))
    speedups = []
    for case in cases(args.rows):
        if args.case and case.name not in args.case:
            continue
        statements = case.script(args.data, args.repeat)
        ours = run_tidemill(case, statements, args.repeat)
        setups = [] if args.no_flink else [s for s in SETUPS if not args.setup or s.label in args.setup]
        flink = run_setups(setups, statements, args.repeat, args.patience * ours.seconds)
        plain = case.structured_streaming
        spark = None if plain is None else run_structured_streaming(plain.make(args.data), args.repeat)
        print(row(case, ours, flink, spark), flush=True)
        for setup, run in flink.items():
            print(f"    Flink {setup.label}: {run.shown} s", file=sys.stderr)
        if flink:
            speedups.append(min(run.seconds for run in flink.values()) / ours.seconds)
    if speedups:
        print(f"Of {len(speedups)}: geometric mean {geometric_mean(speedups):.2f}, least {min(speedups):.2f}")


HEADINGS = (
    "case",
    "rows",
    "Tidemill s",
    "peak GiB",
    "state MiB",
    "best Flink s",
    "configuration",
    "its checkpoint MiB",
    "speed-up",
    "floor",
    "Structured Streaming s",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The best seconds of one INSERT; bytes of its state at the end, and of all processes at the peak.
    ``cut``: it was ended before its end."""

    seconds: float
    state: int
    memory: int = 0
    cut: bool = False

    @property
    def shown(self) -> str:
        return f"{'> ' * self.cut}{self.seconds:.1f}"


def row(case: Case, ours: Run, flink: dict[FlinkSetup, Run], spark: float | None) -> str:
    cells = [
        case.title,
        f"{case.rows:,}",
        f"{ours.seconds:.1f}",
        f"{ours.memory / 2**30:.2f}",
        f"{ours.state / 2**20:.0f}",
    ]
    if flink:
        best = min(flink, key=lambda s: flink[s].seconds)
        run = flink[best]
        cells += [run.shown, best.label, f"{run.state / 2**20:.0f}"]
        cells.append(f"{'> ' * run.cut}{run.seconds / ours.seconds:.2f}")
    else:
        cells += [""] * 4
    cells += [str(case.floor), "" if spark is None else f"{spark:.1f}"]
    return "| " + " | ".join(cells) + " |"


def run_structured_streaming(path: Path, repeat: int) -> float:
    """Best seconds of the case's aggregation in plain Structured Streaming."""
    command = [sys.executable, "-m", "bench.structured_streaming", str(path), str(repeat)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    return float(min(json.loads(done.stdout.strip().splitlines()[-1])))


def run_tidemill(case: Case, statements: list[str], repeat: int) -> Run:
    command = [sys.executable, "-m", "bench.submit"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    with peak_tree_memory(process.pid) as peak:
        output, _ = process.communicate(json.dumps(statements))
    if process.returncode:
        raise SystemExit(f"{case.name}: tidemill failed")
    answer = json.loads(output.strip().splitlines()[-1])
    return Run(seconds=min(answer["seconds"][-repeat:]), state=answer["state"], memory=peak.bytes)


def run_setups(
    setups: Sequence[FlinkSetup], statements: list[str], repeat: int, patience: float
) -> dict[FlinkSetup, Run]:
    """A run per setup; those that failed are named on standard error."""
    runs = {}
    for setup in setups:
        try:
            runs[setup] = run_flink(statements, setup, repeat, patience)
        except subprocess.CalledProcessError as e:
            print(f"    Flink {setup.label} failed: {e.stdout[-1000:]}", file=sys.stderr)
    return runs


def run_flink(statements: list[str], setup: FlinkSetup, repeat: int, patience: float) -> Run:
    """On Flink; its state is the largest checkpoint, full snapshots taken every five seconds."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "q.sql"
        script.write_text((MINI_BATCH if setup.mini_batch else "") + ";\n".join(statements) + ";\n")
        conf = {
            "state.backend.type": setup.backend,
            "execution.checkpointing.interval": "5s",
            "execution.checkpointing.dir": f"file://{folder}/checkpoints",
            "parallelism.default": "2",
            "taskmanager.memory.managed.size": "1g",
        }
        flags = [x for k, v in conf.items() for x in ("-D", f"{k}={v}")]
        with largest_checkpoint(Path(folder) / "checkpoints") as largest:
            done = subprocess.run(
                [ORACLE, "run", "--perf", "--timeout", str(int(patience) + 1), *flags, str(script)],
                capture_output=True,
                text=True,
                check=True,
            )
    inserts = [s for s in json.loads(done.stdout)["statements"] if s["kind"] == "insert"][-repeat:]
    if any("truncated" in s for s in inserts):
        return Run(seconds=patience, state=largest.bytes, cut=True)
    return Run(seconds=min(float(s["elapsed_ms"]) for s in inserts) / 1000, state=largest.bytes)


if __name__ == "__main__":
    main()
