"""Nexmark's scripts as a user runs them, and the function of q14."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Session, folded
from tidemill.client import main
from tidemill.connectors.nexmark import scripts
from tidemill.connectors.nexmark.functions import count_char
from tidemill.errors import ValidationError
from tidemill.session.environment import TableEnvironment

FOLDER = Path(scripts.__file__).parent


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_q10_has_a_complete_folder_per_minute(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """2,000 events at 10 a second of event time are 200 seconds, in epochs of 70."""
    small = tmp_path / "small.sql"
    small.write_text(
        f"SET 'execution.runtime-mode' = '{mode}'; SET 'tidemill.epoch.max-rows' = '700';\n"
        "ALTER TABLE nexmark SET "
        "('events.num' = '2000', 'first-event.rate' = '10', 'next-event.rate' = '10');"
    )
    output = tmp_path / "out"
    script = str(FOLDER / "queries" / "q10.sql")
    init = ["-i", str(FOLDER / "nexmark.sql"), "-i", str(small)]
    assert main.main(["run", *init, script, "-V", f"OUTPUT={output}"]) == 0
    found = {p.name: _times(p) for p in (output / "dt=2015-07-15").iterdir()}
    minutes = [f"00:0{m}" for m in range(4)]
    assert sorted(found) == [f"hm={m.replace(':', '%3A')}" for m in minutes]
    assert sum(map(len, found.values())) == 1840
    for folder, times in found.items():
        assert {t[11:16] for t in times} == {folder.removeprefix("hm=").replace("%3A", ":")}
        assert (output / "dt=2015-07-15" / folder / "_SUCCESS").exists()


def _times(partition: Path) -> list[str]:
    return [row[3] for file in partition.glob("part-*") for row in csv.reader(file.read_text().splitlines())]


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_q13_looks_into_a_file(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """As a join of bids with all of the file."""
    file = tmp_path / "side_input.csv"
    file.write_text("".join(f"{key},value {key}\n" for key in range(0, 10_000, 3)))
    environment = TableEnvironment.create({"execution.runtime-mode": mode, "tidemill.epoch.max-rows": "900"})
    create = scripts.query("q13").split("CREATE TABLE q13")[0].replace("${SIDE_INPUT}", str(file))
    list(environment.execute_script(f"{scripts.declaration()}\n{create}"))
    environment.execute_sql("ALTER TABLE nexmark SET ('events.num' = '2000')")
    joined = (
        "SELECT auction, bidder, price, `dateTime`, `value` FROM bid JOIN side_input"
        " ON MOD(auction, 10000) = `key`"
    )
    found, expected = (
        sorted(tuple(row) for row in environment.execute_sql(text).collect())
        for text in (scripts.select("q13"), joined)
    )
    assert found == expected
    assert 100 < len(found) < 1840


@pytest.fixture
def slow_events() -> Session:
    """In epochs of 900 rows."""
    made = Session({"tidemill.epoch.max-rows": "900"})
    list(made.environment.execute_script(scripts.declaration()))
    made.execute(
        "ALTER TABLE nexmark SET ('events.num' = '5000', 'first-event.rate' = '100',"
        " 'next-event.rate' = '100')"
    )
    return made


@pytest.mark.thorough
def test_q6_is_what_its_definition_says(spark: SparkSession, slow_events: Session) -> None:
    streamed = folded(slow_events.changes(scripts.select("q6")))
    slow_events.execute("SET 'execution.runtime-mode' = 'batch'")
    assert folded(slow_events.changes(scripts.select("q6"))) == streamed
    bids: dict[int, list[tuple[Any, int]]] = {}
    for _, (auction, time, price) in slow_events.changes("SELECT auction, `dateTime`, price FROM bid"):
        bids.setdefault(auction, []).append((time, price))
    finals: dict[int, list[int]] = {}
    auctions = slow_events.changes("SELECT expires, id, seller, `dateTime` FROM auction")
    for expires, auction, seller, begins in sorted(row for _, row in auctions):
        prices = [price for time, price in bids.get(auction, []) if begins <= time <= expires]
        if prices:
            finals.setdefault(seller, []).append(max(prices))
    last = [(s, f[max(0, i - 10) : i + 1]) for s, f in finals.items() for i in range(len(f))]
    assert streamed == Counter((seller, sum(prices) // len(prices)) for seller, prices in last)
    assert len(last) > 50
    assert max(map(len, finals.values())) > 11


@pytest.mark.thorough
def test_q12_counts_every_bid_once(spark: SparkSession, slow_events: Session) -> None:
    """Three seconds of the clock are between epochs."""
    slow_events.environment.context.clock = lambda: 1_714_557_600.0 + 3 * len(slow_events.progress)
    counted = folded(slow_events.changes(f"SELECT bidder, endtime, bid_count FROM ({scripts.select('q12')})"))
    assert set(counted.values()) == {1}
    assert len({end for _, end, _ in counted}) > 1
    bids = Counter[int]()
    for bidder, _, number in counted:
        bids[bidder] += number
    assert bids == Counter(row[0] for _, row in slow_events.changes("SELECT bidder FROM bid"))


def test_queries_by_name() -> None:
    assert scripts.names()[:4] == ("q0", "q1", "q2", "q3")
    assert scripts.names()[-1] == "q23"
    assert scripts.select("q22").endswith("FROM bid")
    with pytest.raises(ValidationError, match="no query 'q24'"):
        scripts.query("q24")


def test_count_char_counts_the_first_byte() -> None:
    texts = pa.array(["abcc", "ccc", None, "é", "", "xyz"])
    characters = pa.array(["c", "cx", "c", "é", "c", "y"])
    assert count_char(texts, characters).to_pylist() == [2, 3, 0, 1, 0, 1]
    assert count_char(pa.array(["éè"]), pa.array(["é"])).to_pylist() == [2]
    with pytest.raises(ValueError, match="character"):
        count_char(pa.array(["a"]), pa.array([""]))
