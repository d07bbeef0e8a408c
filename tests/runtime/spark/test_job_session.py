"""The session of a job."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.session.environments import new_session
from tidemill.runtime.spark.session import job_session, spark_application, time_zone

pytestmark = pytest.mark.usefixtures("processes")


def test_settings_come_as_they_were_given() -> None:
    application = spark_application(new_session().context.configuration)
    odd = {
        "spark.tidemill.x=y:z": "  a=b:c\\d #!\n\té 𝄞 \\u0041 ",
        "spark.sql.shuffle.partitions": "3",
        "spark.tidemill.empty": "",
    }
    session = job_session(application, settings=odd | time_zone("Asia/Kolkata"))
    assert {key: session.conf.get(key) for key in odd} == odd
    assert session.conf.get("spark.sql.session.timeZone") == "Asia/Kolkata"
    assert session.conf.get("spark.sql.caseSensitive") == "true"
    other = job_session(application, settings={})
    assert other.conf.get("spark.tidemill.empty", None) is None


_TWICE = """
from pyspark.sql import SparkSession
from tests.session.environments import ask, new_session

env = new_session(execution__runtime_mode="batch")
names = set()
for _ in range(2):
    for _ in range(3):
        assert ask(env, "SELECT SUM(x) FROM (VALUES (1), (2)) AS v(x) WHERE x > RAND()") == [(3,)]
    names.add(SparkSession.getActiveSession().sparkContext.applicationId)
    SparkSession.getActiveSession().stop()
assert len(names) == 2, names
"""


@pytest.mark.thorough
def test_a_stopped_application_is_followed_by_another() -> None:
    done = subprocess.run([sys.executable, "-c", _TWICE], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
