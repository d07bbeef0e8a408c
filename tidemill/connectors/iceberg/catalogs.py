"""Iceberg's catalogs, which know the tables and say which metadata is the newest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    NoSuchNamespaceError,
    NoSuchTableError,
    NotInstalledError,
    RESTError,
)
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from tidemill.connectors.iceberg.options import CATALOG_OPTIONS
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import ConnectorError, NotSupportedError, ValidationError
from tidemill.files.systems import SETTINGS, is_local, local_path

_CLIENTS = {"botocore.exceptions": ("BotoCoreError", "ClientError"), "thrift.Thrift": ("TException",)}
"""The errors of the libraries that reach Glue and Hive."""


def _errors_of_clients() -> Iterator[type[Exception]]:
    """Of those that are installed."""
    for module, names in _CLIENTS.items():
        with suppress(ImportError):
            yield from (getattr(import_module(module), name) for name in names)


CATALOG_ERRORS = (
    RESTError,
    SQLAlchemyError,
    OSError,
    NoSuchNamespaceError,
    NoSuchTableError,
    *_errors_of_clients(),
)
_PREFIX = "catalog."
_IN_PYICEBERG = {
    "s3.access-key": "s3.access-key-id",
    "s3.secret-key": "s3.secret-access-key",
    "s3.session-token": "s3.session-token",
    "s3.endpoint": "s3.endpoint",
    "s3.region": "s3.region",
}


def catalog_of(name: str, options: Mapping[str, str]) -> Catalog:
    """ConnectorError where it cannot be reached; ``options``: those that CATALOG_OPTIONS declares count."""
    return _loaded(name, tuple(sorted(properties(options).items())))


def properties(options: Mapping[str, str]) -> dict[str, str]:
    """What pyiceberg is told. NotSupportedError, ValidationError for options that do not make a catalog."""
    given = OptionValues(CATALOG_OPTIONS, options)
    kind, uri, warehouse = given["catalog-type"].lower(), given["uri"], given["warehouse"]
    if kind == "hadoop":
        raise NotSupportedError(
            "Iceberg catalogs of type 'hadoop': pyiceberg has none, as they cannot commit safely",
            hint="Use 'catalog-type' = 'sql', or register the tables in a REST catalog.",
        )
    if kind == "sql" and not warehouse:
        raise ValidationError("'warehouse' is required for an Iceberg catalog of type 'sql'.")
    found = {"type": kind}
    if warehouse:
        found["warehouse"] = f"file://{local_path(warehouse)}" if is_local(warehouse) else warehouse
    if kind == "sql" and not uri:
        if not is_local(warehouse):
            raise ValidationError(f"'uri' is required: a catalog cannot be kept in a file of '{warehouse}'.")
        uri = f"sqlite:///{local_path(warehouse)}/catalog.db"
    if uri:
        found["uri"] = uri
    _check_passed_on(options)
    found |= {_IN_PYICEBERG[key]: options[key] for key in SETTINGS if key in options and key in _IN_PYICEBERG}
    return found | {k.removeprefix(_PREFIX): v for k, v in options.items() if k.startswith(_PREFIX)}


def _check_passed_on(options: Mapping[str, str]) -> None:
    """What has an option of its own is not given twice; classes are not loaded by name."""
    for key in options:
        name = key.removeprefix(_PREFIX) if key.startswith(_PREFIX) else ""
        if name in ("type", "uri", "warehouse") or name.endswith("-impl"):
            raise ValidationError(
                f"Option '{key}' of an Iceberg catalog.",
                hint=f"Write '{name}'." if not name.endswith("-impl") else "Classes cannot be named here.",
            )


def catalog_files(uri: str) -> list[str]:
    """The file that a catalog is kept in; none for other databases and for services."""
    try:
        parsed = make_url(uri)
    except ArgumentError:
        return []
    return [parsed.database or ""] if parsed.get_backend_name() == "sqlite" else []


def is_path(value: str) -> bool:
    return value.startswith(("/", "file:"))


@lru_cache(maxsize=16)
def _loaded(name: str, given: tuple[tuple[str, str], ...]) -> Catalog:
    """A catalog holds on to connections."""
    settings: dict[str, Any] = dict(given)
    try:
        _make_folder(settings)
        return load_catalog(name, **settings)
    except (ValueError, *CATALOG_ERRORS) as e:
        raise ConnectorError(f"Cannot open the Iceberg catalog '{name}': {e}") from None
    except ModuleNotFoundError as e:
        raise ValidationError(
            f"An Iceberg catalog of type '{settings['type']}' needs the package '{e.name}', which is not"
            " installed."
        ) from None
    except NotInstalledError as e:
        raise ValidationError(f"An Iceberg catalog of type '{settings['type']}': {e}.") from None


def _make_folder(settings: Mapping[str, str]) -> None:
    """SQLite makes its file, but no folder."""
    warehouse = settings.get("warehouse", "")
    if settings["type"] == "sql" and warehouse.startswith("file:"):
        Path(local_path(warehouse)).mkdir(parents=True, exist_ok=True)
