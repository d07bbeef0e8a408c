"""A Hadoop for the tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.hadoop.mini import Hadoop, fetched, hadoop, native_client


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    """Workers of the suite's Spark, too, are told how to reach it: ask for this before ``spark``."""
    fetched()
    os.environ.update(native_client())
    with hadoop(tmp_path_factory.mktemp("hadoop")) as running:
        yield running
