"""HiveServer2's protocol over a real socket, SQL and all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.gateway.hiveserver2_client import Client
from tidemill.config.option import Configuration
from tidemill.gateway.endpoints.hiveserver2.endpoint import HiveServer2Endpoint
from tidemill.gateway.start import new_gateway

BATCH = {"set:hiveconf:execution.runtime-mode": "batch"}
NUMBERS = """CREATE TABLE g (id INT) WITH ('connector'='datagen', 'rows-per-second'='50',
 'fields.id.kind'='sequence', 'fields.id.start'='1', 'fields.id.end'='1000000')"""
FINISHED, ERROR = 2, 5


@pytest.fixture(scope="module")
def port(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    config = Configuration(
        {
            "tidemill.gateway.directory": str(tmp_path_factory.mktemp("gateway")),
            "parallelism.default": "1",
            "sql-gateway.endpoint.hiveserver2.thrift.port": "0",
        }
    )
    gateway = new_gateway(config)
    gateway.start()
    endpoint = HiveServer2Endpoint(gateway, config)
    endpoint.start()
    yield int(endpoint.address.rpartition(":")[2])
    endpoint.stop()
    gateway.close()


VALUES = """SELECT TRUE, CAST(1 AS TINYINT), CAST(2 AS SMALLINT), 3, CAST(4 AS BIGINT), CAST(1.1 AS FLOAT),
 CAST(2.25 AS DOUBLE), CAST(-1.50 AS DECIMAL(10, 2)), CAST('zwölf 二' AS STRING), DATE '2020-02-02',
 TIMESTAMP '2020-01-01 00:00:10.120', x'00ff', ARRAY[1, NULL], MAP['k', CAST(1.50 AS DECIMAL(5, 2))],
 ROW(1, 'x'),
 TIME '01:02:03', INTERVAL '1-2' YEAR TO MONTH, CAST('ab' AS CHAR(3)), CAST('v' AS VARCHAR(9)),
 CAST(TIMESTAMP '2020-07-01 12:00:00' AS TIMESTAMP_LTZ(3))"""
NULLS = "SELECT " + ", ".join(
    f"CAST(NULL AS {kind})"
    for kind in (
        *(
            "BOOLEAN",
            "TINYINT",
            "SMALLINT",
            "INT",
            "BIGINT",
            "FLOAT",
            "DOUBLE",
            "DECIMAL(10, 2)",
            "STRING",
            "DATE",
        ),
        *(
            "TIMESTAMP(3)",
            "BYTES",
            "ARRAY<INT>",
            "MAP<STRING, DECIMAL(5, 2)>",
            "ROW<a INT, b STRING>",
            "TIME",
        ),
        *("INTERVAL YEAR TO MONTH", "CHAR(3)", "VARCHAR(9)", "TIMESTAMP_LTZ(3)"),
    )
)


@pytest.mark.parametrize("version", [0, 4, 5, 9, 10, 99])
def test_values_and_their_types(port: int, version: int) -> None:
    zone = {"set:hiveconf:table.local-time-zone": "Europe/Paris"}
    client = Client.connected(port, version=version, **BATCH, **zone)
    assert client.opened.serverProtocolVersion == min(version, 10)
    operation = client.run(VALUES)
    (row,) = client.rows(operation)
    nested = ("[1,null]", '{"k":1.50}', '{"EXPR$0":1,"EXPR$1":"x"}')
    assert row[11] == (b"\x00\xff" if version >= 5 else "\0\ufffd")
    assert row[:11] == (
        True,
        1,
        2,
        3,
        4,
        1.1,
        2.25,
        "-1.50",
        "zwölf 二",
        "2020-02-02",
        "2020-01-01 00:00:10.12",
    )
    assert row[12:] == (*nested, "01:02:03", "+1-02", "ab ", "v", "2020-07-01 12:00:00")
    intervals = 20 if version >= 7 else 7
    kinds = [kind for _, kind in client.types(operation)]
    assert kinds == [0, 1, 2, 3, 4, 5, 6, 15, 7, 17, 8, 9, 10, 11, 12, 7, intervals, 19, 18, 8]
    (nothing,) = client.all(NULLS)
    assert nothing == (None,) * 20
    assert client.rows(operation) == []
