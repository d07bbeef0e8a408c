"""SQLAlchemy over a gateway: what it writes is Flink SQL, what it reads are the tables there are."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from pyspark.sql import SparkSession
from sqlalchemy.dialects import registry

from tidemill.alchemy.types import reflected
from tidemill.config.option import Configuration
from tidemill.gateway.endpoints.rest.endpoint import RestEndpoint
from tidemill.gateway.start import GatewayProcess
from tidemill.sql.parser import parse_type

registry.register("tidemill", "tidemill.alchemy.dialect", "TidemillDialect")


@pytest.fixture(scope="module")
def engine(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Engine]:
    folder = str(tmp_path_factory.mktemp("gateway"))
    config = {"tidemill.gateway.directory": folder, "sql-gateway.endpoint.rest.port": "0"}
    house = GatewayProcess(Configuration({**config, "parallelism.default": "1"}))
    house.start()
    endpoint = RestEndpoint(house.gateway, house.config)
    endpoint.start()
    host = endpoint.address.removeprefix("http://")
    made = sa.create_engine(f"tidemill://{host}/default_catalog/default_database?my.key=v")
    yield made
    made.dispose()
    endpoint.stop()
    house.close()


def users(folder: Path) -> sa.Table:
    options = {"connector": "filesystem", "path": str(folder / "users"), "format": "csv"}
    return sa.Table(
        "users",
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True, comment="who it's"),
        sa.Column("select", sa.String),
        sa.Column("Amount", sa.Numeric(10, 2)),
        sa.Column("rate", sa.Float),
        sa.Column("at", sa.DateTime),
        sa.Column("good", sa.Boolean),
        sa.Column("day", sa.Date),
        tidemill_with=options,
        comment="all of them",
    )


def test_tables_rows_and_reflection(engine: sa.Engine, tmp_path: Path) -> None:
    table = users(tmp_path)
    at, day = dt.datetime(2020, 1, 2, 3, 4, 5, 678000), dt.date(2020, 1, 2)
    rows = [(n, f"it's {n}", Decimal(n) / 4, n / 8, at, n % 2 == 0, day) for n in range(1, 8)]
    with engine.connect() as connection:
        table.create(connection)
        connection.execute(table.insert(), [dict(zip(table.c.keys(), row, strict=True)) for row in rows])
        made = [*connection.execute(sa.select(table).order_by(table.c.id))]
        assert made == [(*r[:2], r[2].quantize(Decimal("0.01")), *r[3:]) for r in rows]
        # One job for all rows, not one for each.
        assert len({f.name.split("-")[1] for f in (tmp_path / "users").glob("part-*")}) == 1
        half = (
            sa.select(sa.func.count().label("n"), sa.func.max(table.c.Amount).label("_most"))
            .where(table.c.good.is_(False), table.c["select"].in_(["it's 1", "it's 3"]), table.c.day == day)
            .group_by(table.c.good)
        )
        assert connection.execute(half).one() == (2, Decimal("0.75"))
        page = sa.select(table.c.id).order_by(table.c.id.desc()).limit(2).offset(1)
        assert connection.scalars(page).all() == [6, 5]
        assert connection.scalars(sa.select(table.c.id).order_by(table.c.id).offset(6)).all() == [7]
        joined = sa.select(table.c.id).join(
            table.alias("other"), sa.literal_column("other.id") == table.c.id + 6
        )
        assert connection.scalars(joined).all() == [1]
        connection.execute(
            sa.text("CREATE VIEW few COMMENT 'it''s few' AS SELECT `id` FROM users WHERE `id` < 3")
        )
        seen = sa.inspect(connection)
        assert (seen.get_table_names(), seen.get_view_names()) == (["users"], ["few"])
        assert (seen.has_table("users"), seen.has_table("nosuch")) == (True, False)
        assert seen.get_schema_names() == ["default_database"]
        assert seen.default_schema_name == "default_database"
        assert seen.get_table_comment("users") == {"text": "all of them"}
        assert seen.get_table_comment("few") == {"text": "it's few"}
        definition = " ".join(seen.get_view_definition("few").split())
        assert definition == (
            "SELECT `users`.`id` FROM `default_catalog`.`default_database`.`users` AS `users`"
            " WHERE `users`.`id` < 3"
        )
        again = sa.Table(
            "users", sa.MetaData(), autoload_with=connection, schema="default_catalog.default_database"
        )
        assert [(c.name, str(c.type), c.nullable, c.comment) for c in again.columns] == [
            ("id", "INTEGER", False, "who it's"),
            ("select", "VARCHAR", True, None),
            ("Amount", "DECIMAL(10, 2)", True, None),
            ("rate", "DOUBLE", True, None),
            ("at", "TIMESTAMP", True, None),
            ("good", "BOOLEAN", True, None),
            ("day", "DATE", True, None),
        ]
        assert [c.name for c in again.primary_key] == ["id"]
        assert connection.scalar(sa.select(sa.func.count()).select_from(again)) == 7
        assert again.comment == "all of them"
        with pytest.raises(sa.exc.NoSuchTableError):
            seen.get_table_comment("nosuch")
        with pytest.raises(sa.exc.NoSuchTableError):
            sa.Table("nosuch", sa.MetaData(), autoload_with=connection)
        with pytest.raises(sa.exc.ProgrammingError, match="Object 'nosuch' not found"):
            connection.execute(sa.text("SELECT * FROM nosuch"))
        assert ("my.key", "v") in [tuple(row) for row in connection.execute(sa.text("SET"))]
        connection.commit()
        connection.rollback()


def test_pandas_reads_a_query(engine: sa.Engine) -> None:
    frame = pd.read_sql("SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t(n, s) ORDER BY n", engine)
    assert frame.to_dict("list") == {"n": [1, 2], "s": ["a", "b"]}


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (sa.Column("a", sa.Integer, sa.ForeignKey(users(Path()).c.id)), "FOREIGN KEY"),
        (sa.Column("a", sa.Integer, unique=True), "UNIQUE"),
        (sa.Column("a", sa.Integer, server_default="1"), "defaults of the server"),
    ],
)
def test_what_a_table_cannot_have_is_refused(engine: sa.Engine, column: sa.Column[int], said: str) -> None:
    table = sa.Table("refused", sa.MetaData(), column)
    with pytest.raises(sa.exc.CompileError, match=said):
        sa.schema.CreateTable(table).compile(engine)


def test_statements_are_written_with_flinks_words(engine: sa.Engine) -> None:
    kinds = [sa.Text, sa.Float, sa.REAL, sa.Numeric, sa.LargeBinary, sa.Uuid, sa.BigInteger]
    columns: list[sa.Column[Any]] = [sa.Column(f"c{i}", kind) for i, kind in enumerate(kinds)]
    columns.append(sa.Column("c7", sa.DateTime(timezone=True)))
    columns.append(sa.Column("c8", sa.ARRAY(sa.String(3))))
    text = str(sa.schema.CreateTable(sa.Table("t", sa.MetaData(), *columns)).compile(engine))
    assert [
        " ".join(line.split()).rstrip(",") for line in text.splitlines() if " c" in f" {line.strip()}"
    ] == [
        "c0 STRING",
        "c1 DOUBLE",
        "c2 FLOAT",
        "c3 DECIMAL(38, 18)",
        "c4 BYTES",
        "c5 STRING",
        "c6 BIGINT",
        "c7 TIMESTAMP_LTZ(6)",
        "c8 ARRAY<VARCHAR(3)>",
    ]
    with pytest.raises(sa.exc.CompileError, match="FOR UPDATE"):
        sa.select(sa.text("1")).with_for_update().compile(engine)


def test_every_type_of_a_column_is_reflected(engine: sa.Engine) -> None:
    """And written again as it was, with what is inside."""
    simple = "BOOLEAN, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DATE, STRING, CHAR(2), VARCHAR(3), BYTES"
    inside = "MAP<STRING, ARRAY<ROW<`a b` INT, `c` MULTISET<DECIMAL(5, 2)>>>>"
    texts = [
        *re.split(r", (?!\d)", simple),
        "TIMESTAMP(6)",
        "TIMESTAMP_LTZ(6)",
        "INTERVAL YEAR TO MONTH",
        inside,
    ]
    for text in texts:
        kind = reflected(parse_type(text))
        assert parse_type(kind.compile(engine.dialect)) == parse_type(text)
    for text in ("TINYINT", "TIME", "BINARY(2)", "INTERVAL DAY TO SECOND"):
        assert not isinstance(reflected(parse_type(text)), sa.types.NullType)
