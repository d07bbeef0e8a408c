"""Nexmark's scripts as a user runs them, and the function of q14."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

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


def test_queries_by_name() -> None:
    assert scripts.names()[:4] == ("q0", "q1", "q2", "q3")
    assert scripts.names()[-1] == "q22"
    assert scripts.select("q22").endswith("FROM bid")
    with pytest.raises(ValidationError, match="no query 'q6'"):
        scripts.query("q6")


def test_count_char_counts_the_first_byte() -> None:
    texts = pa.array(["abcc", "ccc", None, "é", "", "xyz"])
    characters = pa.array(["c", "cx", "c", "é", "c", "y"])
    assert count_char(texts, characters).to_pylist() == [2, 3, 0, 1, 0, 1]
    assert count_char(pa.array(["éè"]), pa.array(["é"])).to_pylist() == [2]
    with pytest.raises(ValueError, match="character"):
        count_char(pa.array(["a"]), pa.array([""]))
