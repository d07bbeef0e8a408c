"""Sessions that come and go, and jobs side by side: ``tests.gateway.load`` has as many as it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.load import prove

pytestmark = pytest.mark.thorough


@pytest.mark.timeout(900)
def test_nothing_stays_of_sessions_that_were(tmp_path: Path) -> None:
    load = prove(tmp_path, sessions=120, rows=300_000, together=30, jobs=10)
    assert load.differences == []
