"""A gateway that is killed under load: a few times here; ``tests.gateway.kills`` does it as often as told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.kills import prove

pytestmark = pytest.mark.thorough


@pytest.mark.timeout(900)
def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    proof = prove(tmp_path, kills=2, seed=3)
    assert proof.differences == []
    assert len(proof.ledger.finished) > 5
