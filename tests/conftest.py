"""One Spark session for the whole suite; a test that needs its own says why."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from tests import object_store as store
from tests.connectors import mariadb as maria
from tests.connectors.kafka import Broker, broker, have_classes
from tests.connectors.postgres import Server, programs, server
from tests.google_store import google_server
from tests.hangs import to_file, told_of
from tests.tiers import add_options, choose, select
from tidemill.files.private import own_directory
from tidemill.runtime.spark.settings import DAEMON, unix_sockets
from tidemill.runtime.spark.worker_daemon import NEW_OBJECTS

_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.buffer.pageSize": "4m",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variant.allowDuplicateKeys": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
    **DAEMON,
    # Thousands of small plans, each run once: what the second compiler makes faster costs more than it saves.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+ExitOnOutOfMemoryError",
}

# On a busy machine making an example may take longer than Hypothesis finds healthy.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)
    group = parser.getgroup("random queries")
    group.addoption("--seed", type=int, default=1, help="seed of the first random case")
    group.addoption("--queries", type=int, default=50, help="how many random queries are run")
    parser.addoption("--kills", type=int, default=4, help="how often parts of a cluster are killed")
    parser.addoption("--requests", type=int, default=100, help="how many random requests a gateway is sent")
    parser.addoption("--flips", type=int, default=120, help="how many bits of state files are flipped")


def pytest_configure(config: pytest.Config) -> None:
    choose(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    select(config, items)


def pytest_collection_finish() -> None:
    """Modules and tests are no garbage: looks for it among them take a seventh of the processor time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    shown = to_file(item.config.stash[fault_handler_stderr_fd_key])
    with told_of(float(item.config.getini("faulthandler_timeout")), shown):
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def state_directory(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What programs keep for their user they do not keep for who runs the tests."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Two local cores; workers run this interpreter."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for key, value in {**_CONF, **unix_sockets(own_directory("tests"))}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def processes() -> None:
    """A test that asks for this one starts processes of its own, most of them with a Spark inside."""


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A running PostgreSQL server of the suite's own; clean up what you make in it."""
    if programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with server() as running:
        yield running


@pytest.fixture(scope="session")
def mariadb() -> Iterator[maria.Server]:
    """A running MariaDB server of the suite's own; clean up what you make in it."""
    if maria.program() is None:
        pytest.skip(
            "NO mysql-cdc IS TESTED: MariaDB is not installed (Debian: apt-get install mariadb-server)"
        )
    with maria.server() as running:
        yield running


@pytest.fixture(scope="session")
def object_store() -> Iterator[Mapping[str, str]]:
    """The ``s3.*`` settings of a running S3 server of the suite's own; make buckets in it."""
    with store.server() as settings:
        yield settings


@pytest.fixture(scope="session")
def google_store() -> Iterator[Mapping[str, str]]:
    """The settings of a running Google Cloud Storage server of the suite's own; make buckets in it."""
    with google_server() as settings:
        yield settings


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running Kafka broker of the suite's own; make topics in it."""
    if not have_classes():
        pytest.skip("NO KAFKA IS TESTED: its classes cannot be had from Maven (mvn, Maven Central)")
    with broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The JDBC URL of an empty database, of each kind there is."""
    if request.param == "sqlite":
        return f"jdbc:sqlite:{tmp_path}/database.db"
    running: Server = request.getfixturevalue("postgres")
    running.clear()
    return running.url
