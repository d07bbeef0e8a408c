"""The gateway's HiveServer2 endpoint. Flink's names; its metastore options have no meaning here."""

from __future__ import annotations

from tidemill.config.option import Duration, MemorySize, Option

_PREFIX = "sql-gateway.endpoint.hiveserver2.thrift"
HOST = Option(
    key=f"{_PREFIX}.host",
    kind=str,
    default="127.0.0.1",
    doc="The address that the HiveServer2 endpoint listens on.",
)
PORT = Option(
    key=f"{_PREFIX}.port",
    kind=int,
    default=10000,
    least=0,
    doc="The port of the HiveServer2 endpoint, for binary and HTTP transport, with SASL or without; 0 "
    "takes a free port.",
)
MAX_MESSAGE = Option(
    key=f"{_PREFIX}.max.message.size",
    kind=MemorySize,
    default=MemorySize(100 << 20),
    doc="The longest request that the HiveServer2 endpoint reads.",
)
LOGIN_TIMEOUT = Option(
    key=f"{_PREFIX}.login.timeout",
    kind=Duration,
    default=Duration(20_000),
    doc="How long a client may take to begin and to log in, and to complete a request. A long request "
    "has a second more for each 4 kB.",
)
MAX_CONNECTIONS = Option(
    key=f"{_PREFIX}.worker.threads.max",
    kind=int,
    default=512,
    least=1,
    doc="How many clients may be connected; each client has its own thread. Further clients are refused.",
)
RESULT_MODE = Option(
    key="tidemill.gateway.hiveserver2.result-mode",
    kind=str,
    default="rows",
    choices=("rows", "table"),
    own=True,
    doc="The result of a streaming query for sessions of this endpoint. `rows`: rows in order of "
    "arrival; an update is an error, because the protocol has no updates. `table`: the final "
    "table of a query that ends.",
)
OPTIONS = (HOST, PORT, MAX_MESSAGE, LOGIN_TIMEOUT, MAX_CONNECTIONS, RESULT_MODE)
