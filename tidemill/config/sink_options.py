"""Options of the planner's treatment of changelog sources, of sinks and of state."""

from __future__ import annotations

from tidemill.config.option import Duration, Option

UPSERT_MATERIALIZE = Option(
    key="table.exec.sink.upsert-materialize",
    kind=str,
    default="AUTO",
    choices=("NONE", "AUTO", "FORCE"),
    doc="Whether a sink keeps rows per primary key if the query's upsert key differs from the primary key.",
)
REQUIRE_ON_CONFLICT = Option(
    key="table.exec.sink.require-on-conflict",
    kind=bool,
    default=False,
    doc="Whether an INSERT must say ON CONFLICT if the query's upsert key differs from the primary "
    "key. Flink's default is true.",
)
CDC_EVENTS_DUPLICATE = Option(
    key="table.exec.source.cdc-events-duplicate",
    kind=bool,
    default=False,
    doc="Whether changelog sources with a primary key may repeat events (adds ChangelogNormalize).",
)
NOT_NULL_ENFORCER = Option(
    key="table.exec.sink.not-null-enforcer",
    kind=str,
    default="ERROR",
    choices=("ERROR", "DROP"),
    doc="A row with NULL in a NOT NULL column of its sink or result: the job fails, or the row is left out.",
)
TYPE_LENGTHS = Option(
    key="table.exec.sink.type-length-enforcer",
    kind=str,
    default="IGNORE",
    choices=("IGNORE", "TRIM_PAD", "ERROR"),
    doc="A value that does not have the length of its CHAR, VARCHAR, BINARY or VARBINARY column in a "
    "sink or result: it is written unchanged, it is cut and padded, or the job fails.",
)
NESTED_CONSTRAINTS = Option(
    key="table.exec.sink.nested-constraint-enforcer",
    kind=str,
    default="IGNORE",
    choices=("IGNORE", "ROWS", "ROWS_AND_COLLECTIONS"),
    doc="Whether Tidemill also checks NOT NULL and lengths inside of ROW columns, and inside of collections.",
)
STATE_TTL = Option(
    key="table.exec.state.ttl",
    kind=Duration,
    default=Duration(0),
    doc="How long state is kept after its last write; 0 keeps it forever.",
)
OPTIONS = (
    UPSERT_MATERIALIZE,
    REQUIRE_ON_CONFLICT,
    CDC_EVENTS_DUPLICATE,
    NOT_NULL_ENFORCER,
    TYPE_LENGTHS,
    NESTED_CONSTRAINTS,
    STATE_TTL,
)
