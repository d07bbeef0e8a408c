"""What a connector is. Connectors in other packages import these names from here.

A connector is one folder under ``connectors`` (or any package) plus an entry point in the group
``tidemill.connectors`` that names its ``Connector`` object. The epoch loop owns time and commits;
a connector only answers what there is (offsets), reads ranges, and stages and publishes output.
"""

from tidemill.connectors.api.connector import (
    CatalogConnector,
    ChangingConnector,
    Connector,
    ConnectorOption,
    LookupConnector,
    OutsideTables,
    RewritingConnector,
    TruncatingConnector,
)
from tidemill.connectors.api.lookup import (
    LookedUp,
    LookupRequest,
    LookupTable,
    ScannedTable,
)
from tidemill.connectors.api.sink import (
    BatchMap,
    GroupedSink,
    Sink,
    SinkRequest,
)
from tidemill.connectors.api.source import (
    ArrowSource,
    NamedTable,
    Offset,
    ReadLimit,
    ReadTasks,
    Source,
    SourceRequest,
    Splits,
    SplitSource,
)

__all__ = [
    "ArrowSource",
    "BatchMap",
    "CatalogConnector",
    "Connector",
    "ConnectorOption",
    "ChangingConnector",
    "GroupedSink",
    "LookedUp",
    "LookupConnector",
    "LookupRequest",
    "LookupTable",
    "NamedTable",
    "Offset",
    "OutsideTables",
    "ReadLimit",
    "ReadTasks",
    "RewritingConnector",
    "ScannedTable",
    "Sink",
    "SinkRequest",
    "Source",
    "SourceRequest",
    "SplitSource",
    "Splits",
    "TruncatingConnector",
]
