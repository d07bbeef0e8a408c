"""A function whose code has changed is told of when a job goes on with the state that it made."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask
from tests.session.test_alter_job import folder, put, session, shows
from tidemill.errors import StateError
from tidemill.session.environment import TableEnvironment

__all__ = ["folder"]
CODE = """
from tidemill import udf

RATE = 2

def rate():
    return RATE

@udf(result_type="BIGINT", version="1")
def scaled(v):
    return v * rate()
"""
SCALED = (
    "INSERT INTO totals SELECT k, SUM(scaled(v)) AS s, CAST(NULL AS BIGINT) AS n FROM t WHERE v > 0 "
    "GROUP BY k"
)


def with_function(folder: Path, code: str, checkpoint: str = "state", **more: str) -> TableEnvironment:
    """A session in which ``scaled`` is that of ``code``. A process loads a file once: each has its own."""
    place = folder / str(zlib.crc32(code.encode()))
    place.mkdir(exist_ok=True)
    (place / "functions.py").write_text(code)
    made = session(folder, checkpoint, python__files=str(place), **more)
    ask(made, "CREATE TEMPORARY FUNCTION scaled AS 'functions.scaled' LANGUAGE PYTHON")
    return made


@pytest.mark.thorough
def test_another_implementation_is_told_of(spark: SparkSession, folder: Path) -> None:
    made = with_function(folder, CODE)
    job = made.execute_sql(SCALED).job
    assert job is not None
    put(folder, "a", (1, 10), (2, 20))
    shows(folder, (1, 20, None), (2, 40, None))
    savepoint = job.stop_with_savepoint(str(folder / "kept"))
    from_it = {"execution__state-recovery__path": savepoint}
    other = CODE.replace("RATE = 2", "RATE = 2 + 1")
    made = with_function(folder, other)
    line = ask(made, f"EXPLAIN EVOLUTION FROM '{savepoint}' {SCALED}")[-1]
    assert line == ("function scaled", None, "kept", "its code has changed, its version has not")
    for name, (code, more) in {
        "state": (CODE, {}),
        "same": (f"# The same.\n{CODE}", from_it),
        "other": (other, from_it),
    }.items():
        made = with_function(folder, code, name, **more)
        going_on = made.execute_sql(SCALED).job
        assert going_on is not None
        going_on.cancel()
        told = [text for text in made.context.warnings if "The code of scaled is another one" in text]
        assert len(told) == (code is other)
    made = with_function(folder, other)
    job = made.execute_sql(SCALED).job
    assert job is not None
    assert "The code of scaled is another one" in "".join(made.context.warnings)
    put(folder, "b", (1, 1))
    shows(folder, (1, 23, None), (2, 40, None))
    job.cancel()
    # What the old function has given cannot be computed again.
    made = with_function(folder, other, tidemill__evolution="backfill")
    with pytest.raises(
        StateError, match="would not give the same rows again: the code of scaled has changed"
    ):
        made.execute_sql(SCALED.replace("v > 0", "v > 5"))
    made = with_function(folder, other.replace('version="1"', 'version="2"'))
    with pytest.raises(StateError, match=r"the version of function scaled: 1 then, 2 now"):
        made.execute_sql(SCALED)
