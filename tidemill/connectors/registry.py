"""Finds connectors by identifier among the entry points of ``tidemill.connectors`` and checks options.

A connector is loaded when a table first names it; listing the identifiers imports nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from tidemill.catalog.table import CatalogTable
from tidemill.config.watermark_options import OF_TABLES
from tidemill.connectors.api import Connector, ConnectorOption
from tidemill.connectors.metadata import check_readable, check_writable
from tidemill.connectors.option_values import OptionValues, spelling_hint
from tidemill.errors import NotSupportedError, TidemillError, ValidationError, unsupported_options
from tidemill.types.logical import LogicalType

GROUP = "tidemill.connectors"

# Options that Flink's planner reads for every connector.
_GENERAL = ("connector", "property-version")
PLANNER_OPTIONS = ("connector", "property-version", *(option.key for option in OF_TABLES))

# Connectors of Flink and its ecosystem that Tidemill lacks.
NOT_THERE_YET = frozenset(
    {
        "db2-cdc",
        "doris",
        "dynamodb",
        "elasticsearch-6",
        "elasticsearch-7",
        "elasticsearch-8",
        "faker",
        "firehose",
        "hbase-1.4",
        "hbase-2.2",
        "hbase-2.6",
        "hive",
        "hudi",
        "kinesis",
        "kinesis-legacy",
        "mongodb",
        "mongodb-cdc",
        "oracle-cdc",
        "opensearch",
        "opensearch-2",
        "paimon",
        "prometheus",
        "pulsar",
        "python-input-format",
        "rabbitmq",
        "redis",
        "sqlserver-cdc",
        "starrocks",
        "tidb-cdc",
    }
)

_EXTRAS = {"confluent_kafka": "kafka", "deltalake": "delta", "pyiceberg": "iceberg", "pymysql": "mysql"}
"""The extra of Tidemill that installs each optional package."""


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {e.name: e for e in entry_points(group=GROUP)}


@cache
def _load(identifier: str) -> Connector:
    try:
        connector: Connector = _entry_points()[identifier].load()
    except ModuleNotFoundError as e:
        raise ValidationError(
            f"Connector '{identifier}' needs the package '{e.name}', which is not installed.",
            hint=f"pip install 'tidemill[{_EXTRAS[e.name]}]'" if e.name in _EXTRAS else "",
        ) from None
    return connector


def identifiers() -> tuple[str, ...]:
    """The values that 'connector' can have here, sorted."""
    return tuple(sorted(_entry_points()))


def connector(options: Mapping[str, str]) -> Connector:
    """The connector that ``options`` name. ValidationError if there is none of that name."""
    identifier = options.get("connector")
    if identifier is None:
        raise ValidationError(
            "Table options do not contain an option key 'connector' for discovering a connector.",
            expected=identifiers(),
        )
    if identifier not in _entry_points():
        raise _missing(identifier)
    return _load(identifier)


def _missing(identifier: str) -> TidemillError:
    """NotSupportedError for a connector of Flink that Tidemill lacks, ValidationError for other names."""
    is_flinks = identifier in NOT_THERE_YET
    error = NotSupportedError if is_flinks else ValidationError
    return error(
        f"Could not find any factory for identifier '{identifier}' among the installed connectors."
        "\n\nAvailable factory identifiers are:\n\n" + "\n".join(identifiers()),
        hint=f"Tidemill has no connector '{identifier}' yet."
        if is_flinks
        else spelling_hint([identifier], identifiers()),
    )


def validate(table: CatalogTable, options: Mapping[str, str], *, role: str) -> Connector:
    """Checks a table's options and metadata columns for the ``role`` 'source' or 'sink'; returns its
    connector.

    ``options`` are the table's with hints applied. Raises ValidationError for unknown, missing or
    ill-formed options and for metadata columns that do not fit the connector's keys, NotSupportedError
    when the connector cannot play the role.
    """
    found_connector = connector(options)
    if not (found_connector.is_source if role == "source" else found_connector.is_sink):
        raise NotSupportedError(f"Connector '{found_connector.identifier}' cannot be used as a {role}.")
    try:
        if not found_connector.allows_unknown_options:
            check_unknown(found_connector.identifier, found_connector.options, options)
        OptionValues(found_connector.options, options).check()
        found_connector.validate(table, options)
    except ValidationError as e:
        e.hint = " ".join(filter(None, (e.hint, f"The options are those of table '{table.path}'.")))
        raise
    if role == "source":
        check_readable(table, found_connector.identifier, found_connector.metadata(options))
    else:
        check_writable(table, found_connector.identifier, found_connector.writable_metadata(options))
    return found_connector


def metadata_types(options: Mapping[str, str]) -> Mapping[str, LogicalType]:
    """The metadata keys of the connector that ``options`` name, with the types it gives them in."""
    return connector(options).metadata(options)


def check_unknown(
    identifier: str,
    declared: Collection[ConnectorOption],
    options: Mapping[str, str],
    *,
    general: Collection[str] = _GENERAL,
) -> None:
    """ValidationError if ``options`` have keys that are neither declared nor below a declared map.
    ``general``: the keys of every table that the error lists."""
    declared_keys = {o.key for o in declared if o.kind != "map"}.union(PLANNER_OPTIONS)
    open_keys = tuple(o.key for o in declared if o.kind == "map")
    unknown = sorted(k for k in options if k not in declared_keys and not k.startswith(open_keys or ("\0",)))
    if unknown:
        raise ValidationError(
            unsupported_options(
                identifier,
                unknown,
                {*declared_keys - {*PLANNER_OPTIONS}, *general, *(k + "*" for k in open_keys)},
            ),
            hint=spelling_hint(unknown, declared_keys),
        )
