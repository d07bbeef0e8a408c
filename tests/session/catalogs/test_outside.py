"""CREATE CATALOG of type iceberg: its tables are listed, made, dropped and renamed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.session.environments import ask, new_session
from tidemill.connectors.iceberg.catalogs import catalog_of
from tidemill.errors import ConnectorError, NotPermittedError, NotSupportedError, ValidationError
from tidemill.files.fence import Fence
from tidemill.session.environment import TableEnvironment
from tidemill.session.permissions import Permissions


@pytest.fixture
def session(tmp_path: Path) -> TableEnvironment:
    made = new_session()
    ask(made, f"CREATE CATALOG lake WITH ('type'='iceberg', 'warehouse'='{tmp_path}')", "USE CATALOG lake")
    return made


def test_tables_are_made_listed_and_dropped(session: TableEnvironment, tmp_path: Path) -> None:
    assert ask(session, "SHOW DATABASES") == [("default",)]
    ask(session, "CREATE DATABASE sales", "USE sales")
    ask(
        session,
        "CREATE TABLE orders (id BIGINT, region STRING, seen TIMESTAMP(6), items MAP<STRING, INT>,"
        " PRIMARY KEY (id, region) NOT ENFORCED) PARTITIONED BY (region)",
    )
    ask(session, "CREATE TABLE IF NOT EXISTS orders (id BIGINT)")
    assert ask(session, "SHOW TABLES") == [("orders",)]
    assert [row[:4] for row in ask(session, "DESCRIBE orders")] == [
        ("id", "BIGINT", False, "PRI(id, region)"),
        ("region", "STRING", False, "PRI(id, region)"),
        ("seen", "TIMESTAMP(6)", True, None),
        ("items", "MAP<STRING NOT NULL, INT>", True, None),
    ]
    made = catalog_of("lake", {"warehouse": str(tmp_path)}).load_table("sales.orders")
    assert [field.name for field in made.spec().fields] == ["region"]
    ask(session, "ALTER TABLE orders RENAME TO bought")
    assert ask(session, "SHOW TABLES") == [("bought",)]
    with pytest.raises(ValidationError, match="sales in catalog lake is not empty"):
        ask(session, "USE `default`", "DROP DATABASE sales")
    ask(session, "DROP TABLE sales.bought", "DROP DATABASE sales")
    assert ask(session, "SHOW DATABASES") == [("default",)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE TABLE t (a INT, b AS a + 1)", "The computed column 'b' in an Iceberg catalog"),
        ("CREATE TABLE t (a INT) WITH ('connector'='print')", "Options of a table in an Iceberg catalog"),
        ("CREATE TABLE t (a TIME)", r"there is no type for TIME\(0\)"),
        ("CREATE VIEW v AS SELECT 1", "Views in catalog 'lake' of type 'iceberg'"),
        ("CREATE FUNCTION f AS 'm.f' LANGUAGE PYTHON", "This change of catalog 'lake'"),
    ],
)
def test_what_iceberg_does_not_keep_is_refused(
    session: TableEnvironment, statement: str, message: str
) -> None:
    with pytest.raises(NotSupportedError, match=message):
        ask(session, statement)


def test_options_are_handed_on_to_the_catalog() -> None:
    session = new_session()
    options = "'type'='iceberg', 'catalog-type'='rest', 'uri'='http://127.0.0.1:9', 'token'='t'"
    ask(session, f"CREATE CATALOG far WITH ({options})")
    with pytest.raises(ConnectorError, match="Iceberg catalog 'far'"):
        ask(session, "USE CATALOG far", "SHOW TABLES")
    for wrong in ("'py-catalog-impl'='os.path'", "'py-io-impl'='os.path'"):
        ask(session, f"CREATE CATALOG wrong WITH ('type'='iceberg', 'warehouse'='/tmp/x', {wrong})")
        with pytest.raises(ValidationError, match="Option 'catalog"):
            ask(session, "SHOW TABLES FROM wrong.`default`")
        ask(session, "DROP CATALOG wrong")


def test_a_session_reaches_only_what_is_open_to_it(tmp_path: Path) -> None:
    session = new_session()
    session.context.permissions = Permissions(fence=Fence(allowed=(str(tmp_path / "open"),)))
    ask(session, f"CREATE CATALOG shut WITH ('type'='iceberg', 'warehouse'='{tmp_path}/shut')")
    with pytest.raises(NotPermittedError, match="Option 'warehouse' of the catalog"):
        ask(session, "SHOW TABLES FROM shut.`default`")
    assert not (tmp_path / "shut").exists()
