"""A program that ``spark-submit`` starts: its application is the one that is used, settings and all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

pytestmark = pytest.mark.thorough

PROGRAM = """
from pyspark import SparkContext
from tidemill import TableEnvironment

env = TableEnvironment.create(runtime_mode="batch")
found = env.sql_query("SELECT SUM(n) AS s FROM (VALUES (1), (41)) AS t(n)").to_pandas()
context = SparkContext.getOrCreate()
print("found", found["s"][0], context.master, context.appName)
"""


def test_the_application_of_spark_submit(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    done = subprocess.run(
        [
            str(submit),
            "--master",
            "local[1]",
            "--name",
            "mine",
            "--conf",
            "spark.ui.enabled=false",
            str(program),
        ],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "found 42 local[1] mine" in done.stdout, done.stderr[-3000:]
