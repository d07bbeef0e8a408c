"""Auto parallelism beside fixed widths, over sizes: ``python -m bench.parallelism --scale 0.01 1 10 [QUERY]``

TPC-H by our own engine, each query with exchanges as wide as the data ask for and with each of ``--widths``:
once to warm up and ``--runs`` times, in turns; the best counts. A scale of 1 is a gigabyte of text. What auto
parallelism takes of the best width's time, which nobody knows before, says what tuning would bring.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial

from bench.plain_spark import Sides, geometric_mean, seconds
from bench.tpch import DATA
from tests.tpch.data import write
from tests.tpch.queries import QUERIES, TABLES, create_tables

MIXED = ("q1", "q3", "q4", "q5", "q7", "q9", "q10", "q12", "q13", "q16", "q18", "q21")
AUTO = "execution.batch.adaptive.auto-parallelism.enabled"
WIDTH = "parallelism.default"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, nargs="+", default=[0.01, 0.1, 1.0])
    parser.add_argument("--widths", type=int, nargs="+", default=[2, 16, 200])
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--memory", default="4g", help="of Spark's driver, which runs the tasks, too")
    parser.add_argument("queries", nargs="*", default=list(MIXED))
    given = parser.parse_args()
    for scale in given.scale:
        folder = DATA / f"scale-{scale}"
        if not folder.exists():
            write(folder, scale)
        settings = {"spark.driver.memory": given.memory}
        sides = Sides.over(folder, TABLES, create_tables(folder), QUERIES, settings)
        over_widths(sides, scale, given.queries, given.widths, given.runs)


def over_widths(sides: Sides, scale: float, names: Sequence[str], widths: Sequence[int], runs: int) -> None:
    """Prints a line for each query: seconds, and what auto parallelism takes of the best width's."""
    chosen: dict[str, Mapping[str, str]] = {"auto": {AUTO: "true", WIDTH: "0"}}
    chosen |= {str(width): {AUTO: "false", WIDTH: str(width)} for width in widths}
    print(f"{f'scale {scale}':12}" + "".join(f"{name:>8}" for name in chosen) + f"{'of best':>9}")
    best = {name: _best(sides, name, chosen, runs) for name in names}
    for side in chosen:
        total = sum(times[side] for times in best.values())
        print(f"{f'all, {side}':12} {total:7.2f}")
    ratios = [_of_best(times) for times in best.values()]
    print(f"of the best  mean {geometric_mean(ratios):.2f}, most {max(ratios):.2f}", flush=True)


def _best(sides: Sides, name: str, chosen: Mapping[str, Mapping[str, str]], runs: int) -> dict[str, float]:
    times: dict[str, list[float]] = {side: [] for side in chosen}
    for run in range(runs + 1):
        for side in chosen if run % 2 == 0 else reversed(chosen):
            for key, value in chosen[side].items():
                sides.environment.execute_sql(f"SET '{key}' = '{value}'")
            sides.clear()
            took, _ = seconds(partial(sides.run_own, name))
            times[side] += [took] if run else []
    found = {side: min(each) for side, each in times.items()}
    print(f"{name:12}" + "".join(f"{t:8.2f}" for t in found.values()) + f"{_of_best(found):9.2f}", flush=True)
    return found


def _of_best(times: Mapping[str, float]) -> float:
    return times["auto"] / min(took for side, took in times.items() if side != "auto")


if __name__ == "__main__":
    main()
