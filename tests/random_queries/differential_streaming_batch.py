"""A stream folds to what a batch gives, for any query, any changelog and any cut into epochs.

``--seed`` is the seed of the first case, ``--queries`` how many queries; a case's seed is in its name.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.random_queries.case import QUERIES_PER_CASE, random_case
from tests.random_queries.checking import Checker, report
from tests.random_queries.pools import Theme
from tests.random_queries.small_state import small_state

pytestmark = pytest.mark.thorough


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    first = metafunc.config.getoption("--seed")
    cases = -(-metafunc.config.getoption("--queries") // QUERIES_PER_CASE)
    metafunc.parametrize("seed", range(first, first + cases), ids=lambda s: f"seed={s}")


@pytest.mark.random_queries
def test_streams_fold_to_the_batch_answer(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    checker, case = Checker(tmp_path), random_case(seed)
    with small_state() if case.theme is Theme.LARGE else nullcontext():
        failures = checker.case(case)
        if failures:
            pytest.fail("\n\n".join(report(case, checker.smaller(f)) for f in failures), pytrace=False)
