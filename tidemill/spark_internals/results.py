"""Rows of a frame for the driver as Arrow batches, by the ways that PySpark's own ``toArrow`` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from inspect import signature
from typing import IO, Any

import pyarrow as pa
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.serializers import read_int as _read_int
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.util import local_connect_and_auth

from tidemill.errors import TidemillError
from tidemill.spark_internals.java import SQL, executed_plan, java_frame, scala_object
from tidemill.spark_internals.versions import LOCAL_ROWS, is_on, needed

read_int: Callable[[IO[bytes]], int] = _read_int
"""Four bytes of the stream of ``arrow_stream``, the highest first; EOFError at its end."""
_ZONE = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
"""Spark 4.1 knows no other zone."""
_LOCAL = "LocalTableScan"
_ROWS, _BYTES = 1 << 20, 1 << 30
"""Of one batch: nothing that is computed in the driver comes near."""


@contextmanager
def arrow_stream(frame: DataFrame) -> Iterator[IO[bytes]]:
    """Runs ``frame``. The stream has its batches in Arrow's stream format as their tasks end, then by
    ``read_int`` the number of batches and the places of these in order. Errors of the job are Spark's and
    come at the end, but for those of the reader's own (TidemillError)."""
    port, secret, server = _collected(frame)
    ours = False
    try:
        with _connected(port, secret) as stream:
            yield stream
    except TidemillError:
        ours = True
        raise
    finally:
        # If the reader has failed, Spark only says that nobody reads any more.
        with suppress(Exception) if ours else unwrap_spark_exception():
            server.getResult()


@needed
def _collected(frame: DataFrame) -> tuple[Any, Any, Any]:
    port, secret, server = java_frame(frame).collectAsArrowToPython()
    return port, secret, server


@contextmanager
def _connected(port: int | str, secret: str) -> Iterator[IO[bytes]]:
    """What the JVM sends over a socket that it opened for one reader: at a port, or at the path of a file."""
    stream, connection = local_connect_and_auth(port, secret)
    connection.settimeout(None)
    try:
        yield stream
    finally:
        stream.close()
        connection.close()


@needed
def arrow_schema(frame: DataFrame) -> pa.Schema:
    """The schema of the batches. Instants have the zone UTC."""
    return to_arrow_schema(
        frame.schema,
        error_on_duplicated_field_names_in_struct=True,
        prefers_large_types=False,
        **_ZONE,
    )


def local_stream(frame: DataFrame) -> bytes | None:
    """The rows of ``frame`` in Arrow's stream format if Spark's optimizer has made a table in the driver of
    them, '' for no rows; None if they take a job. Errors of what is computed are Spark's."""
    plan = executed_plan(frame) if is_on(LOCAL_ROWS) else None
    if plan is None or plan.nodeName() != _LOCAL:
        return None
    converters = scala_object(frame.sparkSession.sparkContext, f"{SQL}.execution.arrow.ArrowConverters")
    batches = converters.toBatchWithSchemaIterator(
        plan.rows().iterator(), plan.schema(), _ROWS, _BYTES, "UTC", True, False
    )
    return bytes(batches.next()) if batches.hasNext() else b""
