"""Options of an Iceberg table: those of Iceberg's connector for Flink, and some of our own."""

from __future__ import annotations

from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.lakehouse.buckets import BUCKETS
from tidemill.files.systems import SETTINGS

AS_OF = "as-of-timestamp"
CATALOG_TYPES = ("sql", "rest", "glue", "hive")
CATALOG_OPTIONS = (
    ConnectorOption(
        key="catalog-type",
        default="sql",
        choices=(*CATALOG_TYPES, "hadoop"),
        doc="`sql` keeps the catalog in a database, by default in a file of the warehouse.",
    ),
    ConnectorOption(
        key="uri", doc="Of the catalog: `sqlite:////path`, `postgresql+psycopg://…`, `https://…`."
    ),
    ConnectorOption(key="warehouse", doc="Path or URI below which tables lie."),
    ConnectorOption(
        key="catalog.", kind="map", doc="Any property of pyiceberg's catalog, such as `catalog.token`."
    ),
    *(ConnectorOption(key=key, doc="How the object store is reached.") for key in SETTINGS),
)
OPTIONS = (
    ConnectorOption(key="catalog-name", default="iceberg", doc="The name of the catalog in its database."),
    ConnectorOption(key="catalog-database", default="default", doc="The namespace of the table."),
    ConnectorOption(key="catalog-table", doc="The table there; default: the name of the declared table."),
    *CATALOG_OPTIONS,
    ConnectorOption(
        key="streaming",
        kind="bool",
        default="false",
        doc="Whether a query goes on with what later snapshots append.",
    ),
    ConnectorOption(key="snapshot-id", kind="int", doc="The snapshot to read."),
    ConnectorOption(
        key=AS_OF, kind="int", doc="Reads the snapshot of this time, in ms since 1970-01-01 UTC."
    ),
    ConnectorOption(
        key="start-snapshot-id",
        kind="int",
        doc="With `streaming`: begins with what was appended after this snapshot.",
    ),
    ConnectorOption(
        key="monitor-interval",
        kind="duration",
        default="60 s",
        doc="With `streaming`: how long a table without a new snapshot is left alone.",
    ),
    ConnectorOption(key="sink.target-file-size", kind="memory", default="128mb", doc="Size of a data file."),
    BUCKETS,
    ConnectorOption(
        key="compression",
        default="zstd",
        choices=("snappy", "gzip", "zstd", "none"),
        doc="The codec of Parquet pages.",
    ),
)
