"""Iceberg tables in REST and Glue catalogs: made, listed and committed once, with failures that are named."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.connectors.iceberg_rest import RestCatalog, rest_catalog
from tests.connectors.lake import all_rows, batch, staged
from tests.connectors.sinks import sink
from tests.connectors.sources import source, table
from tests.object_store import server
from tests.session.environments import ask, new_session
from tidemill.catalog.table import CatalogTable
from tidemill.errors import ConnectorError, ValidationError
from tidemill.types import logical as t


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[RestCatalog]:
    with rest_catalog(tmp_path / "lake") as running:
        running.token = "secret"
        yield running


def of_catalog(kind: str, **options: str) -> CatalogTable:
    given = {"connector": "iceberg", "catalog-type": kind, **options}
    return table({"id": t.BIGINT, "name": t.STRING}, given)


def declared(catalog: RestCatalog) -> CatalogTable:
    return of_catalog("rest", **{"uri": catalog.url, "catalog.token": "secret"})


def of_glue(endpoint: str, folder: Path) -> CatalogTable:
    login = {"endpoint": endpoint, "region": "us-east-1", "access-key-id": "k", "secret-access-key": "s"}
    options = {f"catalog.glue.{name}": value for name, value in login.items()}
    return of_catalog("glue", warehouse=str(folder), **options)


def rows_of(into: CatalogTable) -> list[int]:
    return sorted(row["id"] for row in all_rows(source(into)))


def test_tables_are_made_listed_renamed_and_dropped(catalog: RestCatalog) -> None:
    session = new_session()
    options = f"'type'='iceberg', 'catalog-type'='rest', 'uri'='{catalog.url}', 'token'='secret'"
    ask(
        session,
        f"CREATE CATALOG far WITH ({options})",
        "USE CATALOG far",
        "CREATE DATABASE sales",
        "USE sales",
    )
    ask(session, "CREATE TABLE orders (id BIGINT, seen DATE) PARTITIONED BY (seen)")
    assert ask(session, "SHOW TABLES") == [("orders",)]
    assert [row[:2] for row in ask(session, "DESCRIBE orders")] == [("id", "BIGINT"), ("seen", "DATE")]
    ask(session, "ALTER TABLE orders RENAME TO bought")
    assert ask(session, "SHOW TABLES") == [("bought",)]
    ask(session, "DROP TABLE bought", "USE CATALOG default_catalog", "DROP DATABASE far.sales")
    assert ask(session, "SHOW DATABASES IN far") == [("default",)]


def test_an_epoch_is_committed_once_where_the_catalog_does_not_answer(catalog: RestCatalog) -> None:
    into = declared(catalog)
    target = sink(into)
    target.publish(1, staged(target, batch(into, [{"id": 1, "name": "a"}])))
    tokens = staged(target, batch(into, [{"id": 2, "name": "b"}]), epoch=2)
    catalog.lost = 1
    target.publish(2, tokens)
    sink(into).publish(2, tokens)
    assert rows_of(into) == [1, 2]
    commits = [r for r in catalog.requests if r == "POST /v1/namespaces/default/tables/t"]
    assert len(commits) == 3  # the table, and two epochs


def test_writers_of_two_jobs_follow_each_other(catalog: RestCatalog, tmp_path: Path) -> None:
    with server() as services:
        for into in (declared(catalog), of_glue(services["s3.endpoint"], tmp_path)):
            one, other = sink(into), sink(into, job="other")
            for epoch in (1, 2):
                for number, target in enumerate((one, other)):
                    row = {"id": 10 * epoch + number, "name": None}
                    tokens = staged(target, batch(into, [row]), epoch=epoch)
                    target.publish(epoch, tokens)
                    target.publish(epoch, tokens)
            assert rows_of(into) == [10, 11, 20, 21]


def test_a_catalog_that_is_down_or_refuses_the_token_is_named(catalog: RestCatalog) -> None:
    into = declared(catalog)
    target = sink(into)
    target.publish(1, staged(target, batch(into, [{"id": 1, "name": "a"}])))
    catalog.down = True
    with pytest.raises(ConnectorError, match="down"):
        rows_of(into)
    catalog.down = False
    catalog.token = "another"
    with pytest.raises(ConnectorError, match="no such token"):
        rows_of(into)


def test_what_a_glue_catalog_refuses_is_named(catalog: RestCatalog, tmp_path: Path) -> None:
    with pytest.raises(
        ConnectorError, match=r"An error occurred \(401\) when calling the GetTable operation"
    ):
        rows_of(of_glue(catalog.url, tmp_path))


def test_a_glue_catalog_without_a_region_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(ConnectorError, match="You must specify a region"):
        rows_of(of_catalog("glue", warehouse=str(tmp_path)))


@pytest.mark.skipif(find_spec("thrift") is not None, reason="the library is there")
def test_a_library_that_is_missing_is_named() -> None:
    with pytest.raises(ValidationError, match=r"type 'hive': .*pyiceberg\[hive\]"):
        rows_of(of_catalog("hive", uri="thrift://127.0.0.1:9"))
