"""Another user who tries to break in: files, connectors, code and settings that are not for him."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidemill.config.option import Configuration
from tidemill.errors import NotPermittedError, SetupError, TidemillError
from tidemill.files.fence import Fence
from tidemill.files.private import OWN
from tidemill.files.storage import Storage
from tidemill.gateway.api import OperationStatus
from tidemill.gateway.security.reach import reach_of
from tidemill.gateway.service.service import Gateway
from tidemill.gateway.start import GatewayProcess

AUTHENTICATION = "tidemill.gateway.authentication"
PATHS, CONNECTORS = "tidemill.gateway.allowed-paths", "tidemill.gateway.allowed-connectors"
COLUMNS = "CREATE TEMPORARY TABLE t (line STRING) WITH "


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Beside the gateway's own folder: users, a key, what is everybody's, what is one user's."""
    place = tmp_path_factory.mktemp("place")
    for name in ("all", "eve", "ann", "other"):
        (place / name).mkdir()
    for name in ("users", "key.pem", "cert.pem", "audit.log", "ann/secret", "other/secret"):
        (place / name).write_text("secret\n")
    (place / "eve" / "link").symlink_to(place / "users")
    (place / "eve" / "up").symlink_to(place)
    os.link(place / "users", place / "eve" / "hard")
    return place


def configured(place: Path, **more: str) -> Configuration:
    return Configuration(
        {
            "tidemill.gateway.directory": str(place / "gateway"),
            "tidemill.gateway.users-file": str(place / "users"),
            "tidemill.gateway.tls.certificate-file": str(place / "cert.pem"),
            "tidemill.gateway.tls.private-file": str(place / "key.pem"),
            "tidemill.gateway.audit-file": str(place / "audit.log"),
            "parallelism.default": "1",
            **more,
        }
    )


@pytest.fixture(scope="module")
def limited(place: Path) -> Iterator[Gateway]:
    """With users: everybody has a folder, and one that is everybody's."""
    own = f"{place}/all; {place}/{{user}};s3://all/{{user}}"
    options = {AUTHENTICATION: "PASSWORD", PATHS: own, CONNECTORS: "filesystem;jdbc;datagen;spark;print"}
    house = GatewayProcess(configured(place, **options))
    house.start()
    yield house.gateway
    house.close()


@pytest.fixture(scope="module")
def single(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Without users: on this machine alone, and everybody may do everything."""
    folder = tmp_path_factory.mktemp("single")
    house = GatewayProcess(configured(place, **{"tidemill.gateway.directory": str(folder / "gateway")}))
    house.start()
    yield house.gateway
    house.close()


def fails(gateway: Gateway, *statements: str, user: str = "eve", **options: str) -> TidemillError:
    """What the last of ``statements`` is refused with; those before it run."""
    session = gateway.open_session({"execution.runtime-mode": "batch"}, user=user)
    given = {key.replace("__", "."): value for key, value in options.items()}
    for statement in statements:
        last = statement is statements[-1]
        operation = gateway.execute(session, statement, given if last else {}, user=user)
        info = gateway.wait(session, operation, 60, user=user)
        assert (info.status is OperationStatus.ERROR) == last, info.error
    gateway.close_session(session, user=user)
    assert info.error is not None
    return info.error


def read(gateway: Gateway, session: str, operation: str) -> None:
    """To the end."""
    token: int | None = 0
    while token is not None:
        gateway.wait_rows(session, operation, token, 1.0, user="eve")
        token = gateway.fetch(session, operation, token, user="eve").next_token


def table(connector: str, **options: str) -> str:
    written = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    return (
        COLUMNS
        + "("
        + ", ".join(f"'{k}' = '{v}'" for k, v in [("connector", connector), *written.items()])
        + ")"
    )


READ, WRITE = "SELECT * FROM t", "INSERT INTO t VALUES ('x')"
PLACES = {
    "the store": "{gateway}/store/gateway.db",
    "the store's folder": "{gateway}/store",
    "checkpoints of others": "{gateway}/jobs",
    "results of others": "{gateway}/results",
    "the folder that has them all": "{place}",
    "the root": "/",
    "the users": "{place}/users",
    "the key": "file://{place}/key.pem",
    "a URI of one slash": "file:{place}/key.pem",
    "a dot written as a number": "file://{place}/all/%2e%2e/users",
    "up and down": "{place}/all/../users",
    "up by a URI": "file:{place}/eve/../users",
    "a link": "{place}/eve/link",
    "a link that leads up": "{place}/eve/up/users",
    "a hard link": "{place}/eve/hard",
    "through the process": "/proc/self/root{place}/users",
    "what is staged": "{temporary}/spool",
}
ELSEWHERE = {
    "the machine's users": "/etc/passwd",
    "the process": "/proc/self/environ",
    "another user's folder": "{place}/ann/secret",
    "a name that begins alike": "{place}/all-other",
    "nowhere": "/nosuch/place",
    "another store": "s3://other/eve",
    "another user's part of a store": "s3://all/ann",
    "up in a store": "s3://all/eve/../ann",
    "up in a store by numbers": "s3a://all/eve/%2e%2e/ann",
    "a relative path": "users",
}


def filled(template: str, place: Path, gateway: Path) -> str:
    temporary = os.path.join(tempfile.gettempdir(), OWN)
    return template.format(place=place, gateway=gateway, temporary=temporary)


@pytest.mark.parametrize("what", [*PLACES, *ELSEWHERE])
def test_files_of_others(limited: Gateway, place: Path, what: str) -> None:
    path = filled({**PLACES, **ELSEWHERE}[what], place, place / "gateway")
    made = table("filesystem", path=path, format="raw")
    for statement in (READ, WRITE, f"EXPLAIN {READ}", f"EXPLAIN {WRITE}"):
        error = fails(limited, made, statement)
        assert isinstance(error, NotPermittedError)
        assert error.message == (
            "Option 'path' of table 'default_catalog.default_database.t' names a path that this session may "
            "not use."
        )


@pytest.mark.parametrize("what", PLACES)
def test_the_gateway_s_own_are_closed_without_users_too(single: Gateway, place: Path, what: str) -> None:
    gateway = Path(single.config["tidemill.gateway.directory"])
    path = filled(PLACES[what], place, gateway)
    assert isinstance(
        fails(single, table("filesystem", path=path, format="raw"), READ, user=""), NotPermittedError
    )


def test_without_users_all_else_is_open(single: Gateway, place: Path) -> None:
    for path in ("/etc/passwd", f"{place}/other"):
        session = single.open_session({})
        for text in (table("filesystem", path=path, format="raw"), f"EXPLAIN {READ}"):
            operation = single.execute(session, text)
            assert single.wait(session, operation, 60).status is OperationStatus.FINISHED


LOOKUP = (
    "SELECT t.line FROM (SELECT 'a' AS k, PROCTIME() AS p) AS o "
    "JOIN t FOR SYSTEM_TIME AS OF o.p ON o.k = t.line"
)
SECRET = "{place}/ann/secret"
OPEN = table("filesystem", path="{place}/all", format="raw")
SHUT = table("filesystem", path=SECRET, format="raw")
STORE = "{place}/gateway/store/gateway.db"
WAYS = {
    "by a hint": (OPEN, f"SELECT * FROM t /*+ OPTIONS('path'='{SECRET}') */"),
    "by a hint of a sink": (
        OPEN,
        f"INSERT INTO t /*+ OPTIONS('path'='{SECRET}') */ VALUES ('x')",
    ),
    "by LIKE": (
        OPEN,
        f"CREATE TEMPORARY TABLE u WITH ('path' = '{SECRET}') LIKE t",
        "SELECT * FROM u",
    ),
    "by a view": (SHUT, "CREATE TEMPORARY VIEW v AS SELECT * FROM t"),
    "by CREATE TABLE AS": (
        f"{SHUT.replace('TEMPORARY TABLE t (line STRING)', 'TABLE u')} AS SELECT 'x' AS line",
    ),
    "by ALTER TABLE": (
        "CREATE TABLE u (line STRING) WITH ('connector'='filesystem', 'path'='{place}/all', 'format'='raw')",
        f"ALTER TABLE u SET ('path' = '{SECRET}')",
        "SELECT * FROM u",
    ),
    "by a lookup": (
        SHUT,
        LOOKUP,
    ),
    "in a statement set": (
        SHUT,
        "EXECUTE STATEMENT SET BEGIN INSERT INTO t VALUES ('x'); INSERT INTO t VALUES ('y'); END",
    ),
    "by a plan that is written": (
        OPEN,
        f"COMPILE PLAN '{SECRET}' FOR INSERT INTO t VALUES ('x')",
    ),
    "by a plan that is read": (f"EXECUTE PLAN '{SECRET}'",),
    "by a jar": (f"ADD JAR '{SECRET}'",),
    "by a jar that is not there": ("ADD JAR '/nosuch'",),
    "by an SQLite database": (table("jdbc", url=f"jdbc:sqlite:{SECRET}", table_name="x"), READ),
    "by the gateway's own": (table("jdbc", url=f"jdbc:sqlite:{STORE}", table_name="x"), READ),
    "by where rows are staged": (
        table("jdbc", url="jdbc:sqlite:{place}/all/x", table_name="x", sink__staging_path="{place}/ann"),
        WRITE,
    ),
    "by a driver's key": (
        table("jdbc", url=f"jdbc:postgresql://h/d?sslkey={SECRET}", table_name="x"),
        READ,
    ),
    "by a driver's socket": (
        table("jdbc", url="jdbc:postgresql://h/d?host=/run/postgresql", table_name="x"),
        READ,
    ),
    "by Spark's text": (table("spark", format="text", path=SECRET), READ),
    "by a pattern of Spark's": (table("spark", format="text", path="{place}/a*/secret"), READ),
    "by a list of Spark's": (table("spark", format="text", paths=f'["{SECRET}"]'), READ),
    "by a file that is a table": (table("spark", table=f"text.`{SECRET}`"), READ),
    "by Spark's spool": (table("spark", format="rate", spool__path="{place}/ann"), READ),
    "by a connector that is not his": (table("blackhole"), WRITE),
    "by a catalog's database": (
        f"CREATE CATALOG c WITH ('type'='stored', 'url'='sqlite:///{SECRET}')",
        "CREATE TABLE c.`default`.u (a INT) WITH ('connector'='datagen')",
    ),
    "by the store as a catalog": (
        f"CREATE CATALOG c WITH ('type'='stored', 'url'='sqlite:///{STORE}?x=y')",
        "SHOW TABLES IN c.`default`",
    ),
    "by a fragment that SQLite cuts off": (
        "CREATE CATALOG c WITH ('type'='stored', 'url'='sqlite:///file:{place}/ann/x#/../../eve/x?uri=true')",
        "CREATE DATABASE c.d",
    ),
    "by a query that SQLite cuts off": (
        "CREATE CATALOG c WITH ('type'='stored', 'url'='sqlite:///file:{place}/ann/x%3f/../../eve/x?uri=true')",
        "CREATE DATABASE c.d",
    ),
    "by a NUL at which SQLite ends": (
        "CREATE CATALOG c WITH ('type'='stored', 'url'='sqlite:///file:{place}/ann/x%2500/../../eve/x?uri=true')",
        "CREATE DATABASE c.d",
    ),
    "by a fragment behind the store": (
        f"CREATE CATALOG c WITH ('type'='stored', 'url'='sqlite:///file:{STORE}#/../../../eve/x?uri=true')",
        "CREATE DATABASE c.d",
    ),
    "by a checkpoint": (f"SET 'execution.checkpointing.dir' = '{SECRET}'",),
    "by a savepoint": (f"SET 'execution.checkpointing.savepoint-dir' = '{SECRET}'",),
    "by a savepoint's former option": (f"SET 'execution.savepoint.path' = '{SECRET}'",),
    "by a savepoint's place": (f"CREATE SAVEPOINT '{SECRET}' FOR JOB 'j'",),
    "by a list of savepoints": (f"SHOW SAVEPOINTS IN '{SECRET}'",),
    "by what is in a savepoint": (f"DESCRIBE SAVEPOINT '{SECRET}'",),
    "by the end of a savepoint": (f"DROP SAVEPOINT IF EXISTS '{SECRET}'",),
    "by another's state": ("SET 'execution.state-recovery.path' = '{place}/gateway/jobs'",),
    "by what is temporary": ("SET 'tidemill.temporary-directory' = '/etc'",),
    "by a catalog store": ("SET 'table.catalog-store.file.path' = '/etc'",),
    "by files of Python": ("SET 'python.files' = '{place}/eve/evil.py'",),
    "by Spark's jars": ("SET 'spark.jars' = '{place}/eve/evil.jar'",),
    "by Spark's event log": ("SET 'tidemill.spark.eventLog.dir' = '{place}/eve'",),
    "by a function of Python's own": ("CREATE FUNCTION f AS 'os.system' LANGUAGE PYTHON", "SELECT f('id')"),
    "by a function of ours": (
        "CREATE FUNCTION f AS 'tidemill.functions.registry.names' LANGUAGE PYTHON",
        "SELECT f()",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_other_ways(limited: Gateway, place: Path, way: str) -> None:
    statements = [text.replace("{place}", str(place)) for text in WAYS[way]]
    error = fails(limited, *statements)
    assert isinstance(error, NotPermittedError), error
    assert "session may not" in error.message


def test_options_that_come_with_a_statement_or_a_session(limited: Gateway) -> None:
    for key in ("python.files", "spark.jars", "execution.checkpointing.dir", "table.catalog-store.file.path"):
        assert isinstance(fails(limited, "SELECT 1", **{key: "/etc"}), NotPermittedError)
        with pytest.raises(NotPermittedError):
            limited.open_session({key: "/etc"}, user="eve")


def test_a_user_does_not_see_the_gateway_s_options(limited: Gateway, place: Path) -> None:
    session = limited.open_session({}, user="eve")
    assert "parallelism.default" in limited.session_config(session, user="eve")
    assert str(place) not in str(limited.session_config(session, user="eve"))


def test_what_is_his(limited: Gateway, place: Path) -> None:
    session = limited.open_session({}, user="eve")
    for path in (f"{place}/all", f"file://{place}/eve/new", "s3a://all/eve/x"):
        for text in (
            table("filesystem", path=path, format="csv"),
            f"EXPLAIN {WRITE}",
            "DROP TEMPORARY TABLE t",
        ):
            operation = limited.execute(session, text, user="eve")
            info = limited.wait(session, operation, 60, user="eve")
            assert info.status is OperationStatus.FINISHED, info.error


def test_a_plan_that_one_user_knows_is_no_other_s(limited: Gateway, place: Path) -> None:
    made, read = table("filesystem", path=f"{place}/ann", format="raw"), f"EXPLAIN {READ}"
    session = limited.open_session({"execution.runtime-mode": "batch"}, user="ann")
    for text in (made, read):
        operation = limited.execute(session, text, user="ann")
        assert limited.wait(session, operation, 60, user="ann").status is OperationStatus.FINISHED
    assert isinstance(fails(limited, made, read), NotPermittedError)


def test_links_that_a_listing_comes_upon(place: Path) -> None:
    fence = Fence(closed=(str(place / "users"),))
    for folder, names in (("eve", ["link", "hard"]), ("other", [])):
        found = Storage(str(place / folder), fence=fence).files()
        if names:
            with pytest.raises(OSError, match="this session may not use"):
                list(found)
        else:
            assert [file.path for file in found] == ["secret"]


@pytest.mark.parametrize(
    ("statement", "mode"),
    [
        (READ, "batch"),
        (LOOKUP, "streaming"),
        ("INSERT OVERWRITE t VALUES ('x')", "batch"),
    ],
)
def test_links_among_the_files_of_a_table(
    spark: SparkSession, limited: Gateway, place: Path, statement: str, mode: str
) -> None:
    """Nothing is read of what they lead to, and nothing removed."""
    made = table("filesystem", path=f"{place}/eve", format="raw")
    session = limited.open_session({"execution.runtime-mode": mode}, user="eve")
    limited.configure_session(session, made, user="eve")
    operation = limited.execute(session, statement, user="eve")
    with pytest.raises(TidemillError, match="A link leads to a path that this session may not use"):
        read(limited, session, operation)
    limited.close_session(session, user="eve")
    assert (place / "users").read_text() == "secret\n"


def test_names_of_users_that_lead_elsewhere(place: Path) -> None:
    config = configured(
        place, **{AUTHENTICATION: "PASSWORD", PATHS: "/data/{user};bob=/k=1", CONNECTORS: "*;ann=spark"}
    )
    for name in ("..", ".", "../etc", "", "a\\b"):
        assert reach_of(config, name, "/g").fence.allowed == ()
    assert reach_of(config, "ann", "/g").fence.allowed == ("/data/ann",)
    assert reach_of(config, "bob", "/g").fence.allowed == ("/data/bob", "/k=1")
    reach_of(config, "ann", "/g").check_connector("spark")
    with pytest.raises(NotPermittedError):
        reach_of(config, "bob", "/g").check_connector("spark")


def test_modules_that_are_allowed(place: Path) -> None:
    """A file of that name, and what the module has imported, are no functions of it."""
    options = {AUTHENTICATION: "PASSWORD", PATHS: "*", CONNECTORS: "*", "tidemill.gateway.user-code": "true"}
    modules = {"tidemill.gateway.allowed-modules": "tests.gateway.functions"}
    house = GatewayProcess(
        configured(place, **options, **modules, **{"tidemill.gateway.directory": f"{place}/code"})
    )
    house.start()
    try:
        create = "CREATE FUNCTION f AS 'tests.gateway.functions.{}' LANGUAGE PYTHON"
        for name in ("imported", "system"):
            assert (
                "is not declared in module"
                in fails(house.gateway, create.format(name), "SELECT f('a')").message
            )
        assert isinstance(fails(house.gateway, "SET 'python.files' = '/x'"), NotPermittedError)
        session = house.gateway.open_session({}, user="eve")
        for text in (create.format("doubled"), "EXPLAIN SELECT f('a')"):
            operation = house.gateway.execute(session, text, user="eve")
            info = house.gateway.wait(session, operation, 60, user="eve")
            assert info.status is OperationStatus.FINISHED, info.error
    finally:
        house.close()


def test_what_users_may_reach_must_be_said(place: Path) -> None:
    for missing in (PATHS, CONNECTORS):
        chosen = {AUTHENTICATION: "PASSWORD", PATHS: "/data", CONNECTORS: "*", missing: ""}
        with pytest.raises(SetupError, match=f"set '{missing}', which says what users may reach"):
            GatewayProcess(configured(place, **chosen))
    with pytest.raises(SetupError, match="'data' is neither an absolute path nor a URI"):
        GatewayProcess(configured(place, **{AUTHENTICATION: "PASSWORD", PATHS: "data", CONNECTORS: "*"}))


def test_the_store_s_catalogs_are_sealed(single: Gateway) -> None:
    """With the passwords of their tables; other sessions read them."""
    create = "CREATE CATALOG c WITH ('type'='stored')"
    made = "CREATE TABLE c.`default`.t (a INT) WITH ('connector'='jdbc', 'password'='hidden')"
    for text in (made, "DROP TABLE c.`default`.t"):
        session = single.open_session({})
        for statement in (create, text):
            operation = single.execute(session, statement)
            info = single.wait(session, operation, 60)
            assert info.status is OperationStatus.FINISHED, info.error
        store = Path(single.config["tidemill.gateway.directory"]) / "store"
        assert all(b"hidden" not in file.read_bytes() for file in store.iterdir())
