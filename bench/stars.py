"""Queries over facts in 730 partitions of days: ``python -m bench.stars --scale 1 [--against OTHER] [QUERY]``

Against plain Spark SQL (``bench.plain_spark``); or against ourselves: without dynamic partition pruning
(``no-pruning``, which also says how many partitions were read), or with a fixed parallelism (``fixed``).
Once to warm up and ``--runs`` times measured, in turns as ``bench.plain_spark`` does; the best counts.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.plain_spark import Sides, seconds
from tests.stars.data import write
from tests.stars.queries import QUERIES, TABLES, create_tables
from tidemill.runtime.events import JobEvent, PartitionsRead

DATA = Path("/tmp/tidemill-stars")
PRUNED = (
    "brands_of_a_month",
    "brands_across_states",
    "pricey_items_by_state",
    "both_channels_together",
    "customers_of_shops_only",
    "bought_in_two_channels",
    "never_on_holidays",
    "sold_on_holidays",
    "dates_of_a_subquery",
    "returned_what_was_sold",
)
"""Which join facts with a few days."""
MIXED = tuple(QUERIES)[::3] + tuple(QUERIES)[1::3]
SETTINGS = {
    "no-pruning": {"table.optimizer.dynamic-filtering.enabled": ("false", "true")},
    "fixed": {
        "execution.batch.adaptive.auto-parallelism.enabled": ("false", "true"),
        "parallelism.default": ("16", "0"),
    },
}
"""By what is compared: options with the other side's value, and with ours."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.2)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--memory", default="3g", help="of Spark's driver, which runs the tasks, too")
    parser.add_argument("--against", choices=("plain", *SETTINGS), default="plain")
    parser.add_argument("queries", nargs="*")
    given = parser.parse_args()
    folder = DATA / f"scale-{given.scale}"
    if not folder.exists():
        write(folder, given.scale)
    settings = {"spark.driver.memory": given.memory}
    sides = Sides.over(folder, TABLES, create_tables(folder), QUERIES, settings)
    if given.against == "plain":
        sides.compared(given.queries or QUERIES, given.runs)
    else:
        chosen = given.queries or (PRUNED if given.against == "no-pruning" else MIXED)
        with_and_without(sides, given.against, chosen, given.runs)


def with_and_without(sides: Sides, against: str, names: Sequence[str], runs: int) -> None:
    """Prints a line for each query, with the partitions that either side read."""
    context = sides.environment.context
    print(f"{'query':28} {against:>12} {'tidemill':>9} {'ratio':>6}  partitions read")
    totals, ratios = [0.0, 0.0], []
    for name in names:
        partitions: list[set[str]] = [set(), set()]
        times: list[list[float]] = [[], []]
        for run in range(runs + 1):
            for side in (0, 1) if run % 2 == 0 else (1, 0):
                for key, values in SETTINGS[against].items():
                    sides.environment.execute_sql(f"SET '{key}' = '{values[side]}'")
                context.on_event = partial(_note, partitions[side])
                sides.clear()
                took, _ = seconds(partial(sides.run_own, name))
                times[side] += [took] if run else []
        other, own = map(min, times)
        totals = [totals[0] + other, totals[1] + own]
        ratios.append(own / other)
        read = " / ".join(", ".join(sorted(found)) for found in partitions)
        print(f"{name:28} {other:12.2f} {own:9.2f} {ratios[-1]:6.2f}  {read}", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{'together':28} {totals[0]:12.2f} {totals[1]:9.2f} {totals[1] / totals[0]:6.2f}  mean {mean:.2f}")


def _note(found: set[str], event: JobEvent) -> None:
    if isinstance(event, PartitionsRead):
        found.add(f"{event.read} of {event.of}")


if __name__ == "__main__":
    main()
