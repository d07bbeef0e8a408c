"""The kind of catalog ``stored``. Its module and SQLAlchemy are loaded for the first such catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module

from tidemill.catalog.kinds import DEFAULT_DATABASE, CatalogDescription, CatalogKind
from tidemill.catalog.memory import InMemoryCatalog
from tidemill.config.seal import PLAIN, Seal

TYPE = "stored"
URL = "url"


@dataclass(frozen=True, slots=True)
class Place:
    """The database, and how documents are kept in it."""

    url: str
    seal: Seal = PLAIN


Placed = Callable[[str, Iterable[str]], Place]
"""The place for a catalog's option 'url', '' if it has none; the second are the files that the URL names."""


def stored_catalogs(placed: Placed) -> CatalogKind:
    """``placed`` is asked whenever a catalog is looked at; it may refuse."""

    def make(name: str, description: CatalogDescription) -> InMemoryCatalog:
        module = import_module("tidemill.session.catalogs.stored_catalog")
        made: InMemoryCatalog = module.StoredCatalog(name, description, placed)
        return made

    return CatalogKind(options=(DEFAULT_DATABASE, URL), make=make)
