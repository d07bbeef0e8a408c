"""Compares the cases with real Flink 2.3.0 by processor time, for machines that others use.

``python -m bench.processor_time [--rows N] [--case NAME] [--repeat N]`` prints one table. Flink runs in one
process through ``$FLINK_ORACLE``, set up as in ``bench.compare`` with heap state. Of either the least of the
runs of the INSERT counts, all its processes and threads together, Flink's with what planning and its INSERT
over a small file take, which is part of every run there (a few tenths of a second).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from bench.cases import cases
from bench.compare import ORACLE, ROOT
from bench.memory import processor_seconds

SETUP = {
    "state.backend.type": "hashmap",
    "execution.checkpointing.interval": "5s",
    "parallelism.default": "2",
    "taskmanager.memory.managed.size": "1g",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=4_000_000, help="as of bench.compare")
    parser.add_argument("--case", action="append")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "tidemill-bench")
    args = parser.parse_args()
    print("| case | rows | Tidemill s | Flink s | less by | floor |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, flink(_setup(Path(folder))) as process:
        for case in cases(args.rows):
            if args.case and case.name not in args.case:
                continue
            ours = tidemill_seconds(case.script(args.data, args.repeat), args.repeat)
            script = ";\n".join(case.script(args.data, 1))
            theirs = min(flink_seconds(process, script) for _ in range(args.repeat))
            cells = (case.title, f"{case.rows:,}", f"{ours:.1f}", f"{theirs:.1f}", f"{theirs / ours:.2f}")
            print(f"| {' | '.join(cells)} | {case.floor} |", flush=True)


def tidemill_seconds(statements: list[str], repeat: int) -> float:
    command = [sys.executable, "-m", "bench.submit"]
    text = json.dumps(statements)
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=True)
    return float(min(json.loads(done.stdout.strip().splitlines()[-1])["processor"][-repeat:]))


def _setup(folder: Path) -> dict[str, str]:
    return {**SETUP, "execution.checkpointing.dir": f"file://{folder}/checkpoints"}


@contextmanager
def flink(setup: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process that answers each line of its input, a script, with one of its output."""
    flags = [x for k, v in setup.items() for x in ("-D", f"{k}={v}")]
    command = [ORACLE, "serve", "--perf", *flags]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    try:
        _line(process.stdout)
        yield process
    finally:
        process.stdin.close()
        process.wait()


def flink_seconds(process: subprocess.Popen[str], script: str) -> float:
    before = processor_seconds(process.pid)
    answer = flink_answer(process, script, 900)
    if not answer["ok"] or any("truncated" in s for s in answer["statements"]):
        raise SystemExit(f"Flink failed: {answer['statements'][-1:]}")
    return processor_seconds(process.pid) - before


def flink_answer(process: subprocess.Popen[str], script: str, timeout: int) -> dict[str, Any]:
    """``timeout``: the seconds after which a statement is ended ("truncated")."""
    assert process.stdin is not None
    process.stdin.write(json.dumps({"sql": script, "timeout": timeout}) + "\n")
    process.stdin.flush()
    return _line(process.stdout)


def _line(stream: IO[str] | None) -> dict[str, Any]:
    assert stream is not None
    found: dict[str, Any] = json.loads(stream.readline())
    return found


if __name__ == "__main__":
    main()
