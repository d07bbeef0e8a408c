"""Where a session's catalogs are listed and kept, by its options."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tidemill.catalog.kinds import CatalogStore
from tidemill.config import table_options
from tidemill.config.option import Configuration
from tidemill.config.seal import PLAIN, Seal
from tidemill.errors import ValidationError
from tidemill.session.catalogs.file_store import FileCatalogStore

URL = "url"
"""The option that names the database of a stored catalog."""
_FILE = "catalogs.db"


@dataclass(frozen=True, slots=True)
class Place:
    """The database of a stored catalog. ``seal`` encrypts the documents in it."""

    url: str
    seal: Seal = PLAIN


Placed = Callable[[str, Iterable[str]], Place]
"""Gives the place for a catalog's option 'url' ('' if the catalog has none) and the files that the URL
names."""


def state_directory() -> str:
    """Where this user's programs keep what outlives them."""
    return os.path.join(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state", "tidemill")


def sqlite_url(file: str) -> str:
    """The URL of an SQLite database for SQLAlchemy."""
    return f"sqlite:///{file}"


def own_catalogs_url() -> str:
    """The database of stored catalogs of sessions that are in no gateway."""
    return sqlite_url(os.path.join(state_directory(), _FILE))


def catalog_store(config: Configuration) -> CatalogStore | None:
    """None where catalogs live as long as the session."""
    if config.read(table_options.CATALOG_STORE).lower() != "file":
        return None
    folder = config.read(table_options.CATALOG_STORE_PATH)
    if not folder:
        raise ValidationError(
            f"'{table_options.CATALOG_STORE.key}' = 'file' needs a folder: "
            f"'{table_options.CATALOG_STORE_PATH.key}' is not set."
        )
    return FileCatalogStore(folder.removeprefix("file://"))
