"""What has expired is as if it had never been: rows that come after it make a changelog of their own.

Two unrelated changelogs of the same tables stream into one job, which is stopped between them while the clock
goes on for longer than the state TTL. What it showed adds up to the batch answer of the one and that of the
other. It is ``--queries`` / 10 queries that are asked so.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.random_queries.answers import Data, Stretch, batch_answer
from tests.random_queries.case import Case, Query, Run, random_case
from tests.random_queries.pools import Theme
from tests.random_queries.tables import Table, again
from tests.runtime.running import Change, folded
from tidemill.errors import NotSupportedError

pytestmark = pytest.mark.thorough

TTL_SECONDS = 100.0
SHARE = 10
BY_TIME = re.compile(r"INTERVAL|SYSTEM_TIME|ORDER BY \w+\.rt|\.rt =|= \w+\.rt")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    first = metafunc.config.getoption("--seed")
    count = -(-metafunc.config.getoption("--queries") // SHARE)
    metafunc.parametrize("seed", range(first, first + count), ids=lambda s: f"seed={s}")


@pytest.mark.random_queries
def test_rows_after_the_end_of_all_state_are_a_world_of_their_own(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    case = random_case(seed)
    if case.theme is Theme.LARGE:
        pytest.skip("small tables are enough")
    query = case.queries[seed % len(case.queries)]
    if BY_TIME.search(query.query):
        pytest.skip("by event time the later rows are late, not the first of a new world")
    later = tuple(again(table, Random(seed)) for table in case.tables)
    worlds = [Data(folder=tmp_path / str(n), tables=t).write() for n, t in enumerate((case.tables, later))]
    try:
        shown = folded(_changes(case, query, later, tmp_path / "stream"))
    except NotSupportedError as refusal:
        pytest.skip(str(refusal))
    assert shown == batch_answer(worlds[0], query.query) + batch_answer(worlds[1], query.query), query.text


def _changes(case: Case, query: Query, later: tuple[Table, ...], folder: Path) -> list[Change]:
    """Both changelogs through one job, the clock far ahead for the second."""
    options = {
        **query.options,
        "table.exec.state.ttl": f"{TTL_SECONDS:.0f} s",
        "tidemill.epoch.max-rows": str(query.runs[-1].rows),
        "execution.checkpointing.dir": str(folder / "epochs"),
    }
    changes: list[Change] = []
    for number, tables in enumerate((case.tables, later)):
        for table in tables:
            path = folder / f"{table.name}.changes"
            path.mkdir(parents=True, exist_ok=True)
            (path / str(number)).write_text("".join(f"{line}\n" for line in table.changelog_lines()))
        data = Data(folder=folder, tables=tables)
        stretch = Stretch(run=Run(rows=0, epochs=0))
        environment = data.environment(options, changelog=True)
        seconds = 2 * TTL_SECONDS * number + 1
        environment.context.clock = partial(float, seconds)
        stretch.start(query.query, environment)
        changes += stretch.changes()
    return changes
