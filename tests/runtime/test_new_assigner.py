"""A window function that one file declares works through the whole path."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import folded
from tests.runtime.test_emission import COUNTED, ON_TIME
from tests.runtime.test_event_time import session
from tidemill.operators.window.assigners import kinds
from tidemill.operators.window.assigners.tumble import KIND as TUMBLE
from tidemill.operators.window.assigners.tumble import Tumble


def _halves(size: int, slide: int, offset: int) -> Tumble:
    return Tumble(size=size // 2, offset=offset)


HALVES = replace(TUMBLE, name="HALVES", cut=_halves)


def test_a_new_assigner(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kinds(), HALVES.name, HALVES)
    made = session(tmp_path, 1)
    window = "HALVES(TABLE ticks, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
    assert folded(made.changes(COUNTED.format(window))) == Counter((e, *v) for e, v in ON_TIME.items())
