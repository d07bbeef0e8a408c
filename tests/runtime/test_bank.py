"""The bank: money moves between accounts, so the sum of all balances is 0 in everything ever shown."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Session, folded, states

BALANCES = """
SELECT account, SUM(amount) AS balance FROM (
  SELECT debtor AS account, -amount AS amount FROM transfers
  UNION ALL SELECT creditor, amount FROM transfers) GROUP BY account
"""
BALANCES_BY_JOIN = """
SELECT c.account, c.amount - d.amount AS balance FROM
  (SELECT creditor AS account, SUM(amount) AS amount FROM transfers GROUP BY creditor) c
  JOIN (SELECT debtor AS account, SUM(amount) AS amount FROM transfers GROUP BY debtor) d
  ON c.account = d.account
"""
ACCOUNTS = 7
TRANSFERS = 60


@pytest.fixture
def transfers(spark: SparkSession, tmp_path: Path) -> str:
    """A first round in which every account pays and is paid, then random transfers."""
    chance = random.Random(5)
    lines = [f"{i},{(i + 1) % ACCOUNTS},{100 + i}" for i in range(ACCOUNTS)]
    for _ in range(TRANSFERS):
        debtor, creditor = chance.sample(range(ACCOUNTS), 2)
        lines.append(f"{debtor},{creditor},{chance.randint(1, 50)}")
    (tmp_path / "transfers.csv").write_text("\n".join(lines) + "\n")
    return (
        "CREATE TABLE transfers (debtor INT, creditor INT, amount BIGINT) "
        f"WITH ('connector'='filesystem', 'path'='{tmp_path}/transfers.csv', 'format'='csv')"
    )


@pytest.mark.thorough
@pytest.mark.parametrize("cut", [1_000, ACCOUNTS, 11])
@pytest.mark.parametrize("balances", [BALANCES, BALANCES_BY_JOIN])
def test_every_total_that_is_shown_is_zero(transfers: str, balances: str, cut: int) -> None:
    session = Session({"tidemill.epoch.max-rows": str(cut)})
    session.execute(transfers)
    totals = session.changes(f"SELECT SUM(balance) AS total FROM ({balances})")
    assert totals == [("+I", (0,))]
    assert len(session.progress) == -(-(ACCOUNTS + TRANSFERS) // cut)


@pytest.mark.one_case
@pytest.mark.parametrize("balances", [BALANCES, BALANCES_BY_JOIN])
def test_balances_add_up_to_zero_after_every_epoch(transfers: str, balances: str) -> None:
    session = Session({"tidemill.epoch.max-rows": str(ACCOUNTS)})
    session.execute(transfers)
    epochs: list[int] = []
    environment = session.environment
    environment.context.on_progress = lambda progress: epochs.append(progress.rows_out)
    changes = session.changes(balances)
    seen = list(states(changes))
    ends = [sum(epochs[: n + 1]) - 1 for n in range(len(epochs))]
    assert len(ends) > 3
    for end in ends:
        if end >= 0:
            assert sum(balance * count for (_, balance), count in seen[end].items()) == 0
    assert len(folded(changes)) == ACCOUNTS
