"""What a file's columns are for Spark, where the files before it had nearly the same schema."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from tidemill.connectors.formats.columnar.parquet_footer import stored_columns


def types(columns: dict[str, pa.Array], **options: Any) -> dict[str, str]:
    written = io.BytesIO()
    parquet.write_table(pa.table(columns), written, **options)
    found = stored_columns(parquet.ParquetFile(written))
    assert found is not None
    return {name: "" if kind is None else kind.spark for name, kind in found.items()}


def test_files_of_one_schema_share_what_was_found() -> None:
    first, second = (io.BytesIO(), io.BytesIO())
    for written, value in ((first, 1), (second, 2)):
        parquet.write_table(pa.table({"shared": pa.array([value])}), written)
    found = [stored_columns(parquet.ParquetFile(written)) for written in (first, second)]
    assert found[0] is found[1] is not None


def test_what_differs_in_the_file_alone_is_seen() -> None:
    """Arrow's schema, the file's own types, names: each decides."""
    times = pa.array([1], pa.timestamp("us"))
    assert types({"x": times}) == {"x": "TIMESTAMP_NTZ"}
    assert types({"x": times.cast(pa.timestamp("us", "UTC"))}) == {"x": "TIMESTAMP"}
    assert types({"x": times}, use_deprecated_int96_timestamps=True) != {"x": "TIMESTAMP_NTZ"}
    assert types({"y": times}) == {"y": "TIMESTAMP_NTZ"}
    assert types({"x": pa.array([1], pa.int32())}) == {"x": "INT"}
    assert types({"x": pa.array([1], pa.uint32())}) == {"x": "BIGINT"}
    assert types({"x": pa.array([1], pa.int32()), "y": times}) == {"x": "INT", "y": "TIMESTAMP_NTZ"}
    assert types({"x": times}) == {"x": "TIMESTAMP_NTZ"}


def test_a_codec_that_spark_lacks_is_seen_in_each_file() -> None:
    for codec, known in (("snappy", True), ("brotli", False), ("snappy", True)):
        written = io.BytesIO()
        parquet.write_table(pa.table({"x": pa.array([1], pa.int16())}), written, compression=codec)
        assert (stored_columns(parquet.ParquetFile(written)) is not None) is known
