"""Sessions that come and go: a few here; ``tests.gateway.load`` does it as often as told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.load import prove


@pytest.mark.timeout(900)
def test_nothing_stays_of_sessions_that_were(tmp_path: Path) -> None:
    load = prove(tmp_path, sessions=120, rows=300_000, together=30)
    assert load.differences == []
