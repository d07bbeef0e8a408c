"""Iceberg tables in a REST catalog: they are made, listed and committed once, and failures are named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connectors.iceberg_rest import RestCatalog, rest_catalog
from tests.connectors.lake import all_rows, batch, staged
from tests.connectors.sinks import sink
from tests.connectors.sources import source, table
from tests.session.environments import ask, new_session
from tidemill.catalog.table import CatalogTable
from tidemill.errors import ConnectorError
from tidemill.types import logical as t


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[RestCatalog]:
    with rest_catalog(tmp_path / "lake") as running:
        running.token = "secret"
        yield running


def declared(catalog: RestCatalog) -> CatalogTable:
    given = {"connector": "iceberg", "catalog-type": "rest", "uri": catalog.url, "catalog.token": "secret"}
    return table({"id": t.BIGINT, "name": t.STRING}, given)


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


def test_writers_of_two_jobs_follow_each_other(catalog: RestCatalog) -> None:
    into = declared(catalog)
    one, other = sink(into), sink(into, job="other")
    for epoch in (1, 2):
        for number, target in enumerate((one, other)):
            row = {"id": 10 * epoch + number, "name": None}
            target.publish(epoch, staged(target, batch(into, [row]), epoch=epoch))
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
