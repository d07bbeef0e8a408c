"""The kind of catalog ``savepoint``. Its module is loaded for the first such catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from tidemill.catalog.kinds import CatalogDescription, CatalogKind
from tidemill.catalog.memory import InMemoryCatalog
from tidemill.files.systems import SETTINGS

if TYPE_CHECKING:
    from tidemill.runtime.checkpoint.savepoint import Savepoint

TYPE = "savepoint"
PATH, JOB = "path", "job"

Look = Callable[[Mapping[str, str]], "Savepoint"]
Target = Callable[[], str]


def savepoint_catalogs(look: Look, target: Target) -> CatalogKind:
    """``look``: opens the savepoint that a catalog's options name, or makes one of a job; it may refuse.
    ``target``: where INSERT writes a new savepoint, '' where the session does not say."""

    def make(name: str, description: CatalogDescription) -> InMemoryCatalog:
        module = import_module("tidemill.session.catalogs.savepoint_catalog")
        made: InMemoryCatalog = module.SavepointCatalog(name, description, look, target)
        return made

    return CatalogKind(options=(PATH, JOB, *SETTINGS), make=make)
