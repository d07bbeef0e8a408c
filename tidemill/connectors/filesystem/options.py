"""The options of the ``filesystem`` connector, with Flink's keys."""

from __future__ import annotations

from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.lookup.options import LOOKUP_OPTIONS

OPTIONS = (
    ConnectorOption(
        key="path",
        required=True,
        doc="A file or a directory: a plain path, or a URI of file, s3 (s3a), gs or hdfs.",
    ),
    ConnectorOption(key="format", required=True, doc="Format of the files."),
    ConnectorOption(
        key="source.monitor-interval",
        kind="duration",
        doc="Watch the directory for new files; unset, the source is bounded.",
    ),
    ConnectorOption(key="source.path.regex-pattern", doc="Read only files whose whole path matches."),
    ConnectorOption(
        key="source.report-statistics", default="ALL", choices=("ALL", "NONE"), doc="Accepted, unused."
    ),
    ConnectorOption(
        key="partition.default-name",
        default="__DEFAULT_PARTITION__",
        doc="Directory name for NULL and empty partition values.",
    ),
    ConnectorOption(key="sink.parallelism", kind="int", least=1, doc="Number of writing tasks."),
    ConnectorOption(
        key="sink.rolling-policy.file-size", kind="memory", default="128mb", doc="Start a new file beyond."
    ),
    ConnectorOption(
        key="sink.rolling-policy.rollover-interval",
        kind="duration",
        default="30 min",
        doc="Accepted; every epoch ends its files.",
    ),
    ConnectorOption(
        key="sink.rolling-policy.check-interval", kind="duration", default="1 min", doc="Accepted, unused."
    ),
    ConnectorOption(
        key="sink.rolling-policy.inactivity-interval",
        kind="duration",
        default="30 min",
        doc="Accepted; every epoch ends its files.",
    ),
    ConnectorOption(
        key="sink.shuffle-by-partition.enable",
        kind="bool",
        default="false",
        doc="Bring rows of one partition to one task before writing.",
    ),
    ConnectorOption(
        key="sink.partition-commit.trigger",
        default="process-time",
        choices=("process-time", "partition-time"),
        doc="A partition is complete after the delay, or when one has come that is later by more than it.",
    ),
    ConnectorOption(
        key="sink.partition-commit.delay", kind="duration", default="0 s", doc="0: with every epoch."
    ),
    ConnectorOption(key="sink.partition-commit.watermark-time-zone", default="UTC", doc="Accepted, unused."),
    ConnectorOption(
        key="sink.partition-commit.policy.kind", doc="success-file: a marker in complete partitions."
    ),
    ConnectorOption(
        key="sink.partition-commit.success-file.name", default="_SUCCESS", doc="Name of the marker file."
    ),
    ConnectorOption(key="s3.endpoint", doc="An S3 store other than Amazon's: http://host:port."),
    ConnectorOption(key="s3.region", doc="Region of the bucket."),
    ConnectorOption(key="s3.access-key", doc="Unset: as AWS's own tools find it (AWS_ACCESS_KEY_ID...)."),
    ConnectorOption(key="s3.secret-key", doc="Goes with s3.access-key."),
    ConnectorOption(key="s3.session-token", doc="Goes with a temporary s3.access-key."),
    ConnectorOption(
        key="gs.endpoint",
        doc="A store in place of Google's, without credentials (an emulator): http://host:port.",
    ),
    ConnectorOption(key="auto-compaction", kind="bool", default="false", doc="Accepted, unused."),
    ConnectorOption(key="compaction.file-size", kind="memory", doc="Accepted, unused."),
    ConnectorOption(key="compaction.parallelism", kind="int", doc="Accepted, unused."),
    ConnectorOption(key="partition.time-extractor.kind", default="default", doc="Only 'default'."),
    ConnectorOption(
        key="partition.time-extractor.timestamp-pattern",
        doc="A partition's time, with $column for values of it; by default the first partition column.",
    ),
    ConnectorOption(
        key="partition.time-extractor.timestamp-formatter",
        doc="Not supported: times are 'yyyy-MM-dd HH:mm:ss' or 'yyyy-MM-dd'.",
    ),
    *LOOKUP_OPTIONS,
)
