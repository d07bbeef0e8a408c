"""The kind of catalog ``stored``. Its module and SQLAlchemy are loaded for the first such catalog."""

from __future__ import annotations

from importlib import import_module

from tidemill.catalog.kinds import DEFAULT_DATABASE, CatalogDescription, CatalogKind
from tidemill.catalog.memory import InMemoryCatalog
from tidemill.session.catalogs.locations import URL, Placed

TYPE = "stored"


def stored_catalogs(placed: Placed) -> CatalogKind:
    """``placed`` is called whenever a catalog is read or changed; it may refuse."""

    def make(name: str, description: CatalogDescription) -> InMemoryCatalog:
        module = import_module("tidemill.session.catalogs.stored_catalog")
        made: InMemoryCatalog = module.StoredCatalog(name, description, placed)
        return made

    return CatalogKind(options=(DEFAULT_DATABASE, URL), make=make)
