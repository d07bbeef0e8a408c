"""Options of a Delta table: those of Delta's connector for Flink, and some of our own."""

from __future__ import annotations

from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.delta.vectors import PROPERTY
from tidemill.connectors.lakehouse.buckets import BUCKETS
from tidemill.files.systems import SETTINGS

BATCH, STREAMING = "batch", "streaming"
AS_OF_MILLIS = "as-of-millis"
"""Where FOR SYSTEM_TIME AS OF puts its time."""

OPTIONS = (
    ConnectorOption(key="table-path", required=True, doc="Path or URI of the table: local, s3://."),
    ConnectorOption(
        key="mode",
        default=BATCH,
        choices=(BATCH, STREAMING),
        doc="`batch` reads one version, `streaming` goes on with what is appended.",
    ),
    ConnectorOption(key="versionAsOf", kind="int", least=0, doc="The version to read."),
    ConnectorOption(
        key="timestampAsOf",
        doc="Reads the version of this time: `yyyy-MM-dd HH:mm:ss[.SSS]` in the session's time zone.",
    ),
    ConnectorOption(key=AS_OF_MILLIS, kind="int", doc="The same as milliseconds since 1970-01-01 UTC."),
    ConnectorOption(
        key="startingVersion",
        kind="int",
        least=0,
        doc="In `streaming` mode: begins with the rows that this version has appended, without a snapshot.",
    ),
    ConnectorOption(
        key="readChangeFeed",
        kind="bool",
        default="false",
        doc="In `streaming` mode: also updates and deletes. Without delta.enableChangeDataFeed an update is"
        " the delete and insert of all rows of a file.",
    ),
    ConnectorOption(
        key="ignoreDeletes",
        kind="bool",
        default="false",
        doc="In `streaming` mode: versions that only remove rows are no error.",
    ),
    ConnectorOption(
        key="ignoreChanges",
        kind="bool",
        default="false",
        doc="In `streaming` mode: files that a version has rewritten are read again.",
    ),
    ConnectorOption(
        key="sink.rolling-policy.file-size", kind="memory", default="128mb", doc="Size of a data file."
    ),
    BUCKETS,
    ConnectorOption(
        key=PROPERTY,
        kind="bool",
        doc="Property of a new table: changes mark rows as deleted in deletion vectors, and write no file"
        " anew. An existing table keeps what it has, and is refused if it has the other value.",
    ),
    ConnectorOption(
        key="compression",
        default="snappy",
        choices=("snappy", "gzip", "zstd", "none"),
        doc="The codec of Parquet pages.",
    ),
    *(ConnectorOption(key=key, doc="How the object store is reached.") for key in SETTINGS),
)
