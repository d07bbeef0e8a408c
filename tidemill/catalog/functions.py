"""User functions of a session: temporary system functions, temporary and permanent catalog functions.

A name resolves in Flink's order: temporary system functions, built-ins (not here), temporary catalog
functions, catalog functions. Names are not case-sensitive.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from tidemill.catalog.memory import InMemoryCatalog
from tidemill.catalog.objects import CatalogFunction
from tidemill.catalog.table import ObjectPath
from tidemill.errors import ValidationError

K = TypeVar("K")


class Catalogs(Protocol):
    """What functions need to know of the session's catalogs."""

    catalogs: dict[str, InMemoryCatalog]

    def catalog(self, name: str) -> InMemoryCatalog:
        """The catalog of that name, which must exist."""
        ...

    def qualify(self, parts: tuple[str, ...]) -> ObjectPath:
        """The full path of a name of one to three parts."""
        ...


class FunctionCatalog:
    """The functions that CREATE FUNCTION made; permanent ones live in their databases."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs
        self._system: dict[str, CatalogFunction] = {}
        self._temporary: dict[ObjectPath, CatalogFunction] = {}

    def system(self, name: str) -> CatalogFunction | None:
        """The temporary system function ``name``; it comes before built-ins."""
        return self._system.get(name.lower())

    def find(self, path: ObjectPath) -> CatalogFunction | None:
        """The catalog function at ``path``, the temporary one first; a built-in comes before it."""
        low = _lower(path)
        catalog = self._catalogs.catalogs.get(low.catalog)
        database = catalog.databases.get(low.database) if catalog else None
        return self._temporary.get(low) or (database.functions.get(low.name) if database else None)

    def create(self, function: CatalogFunction, *, ignore_if_exists: bool) -> None:
        if function.path is None:
            self._add(self._system, function.name.lower(), function, ignore_if_exists)
        elif function.temporary:
            self._add(self._temporary, _lower(function.path), function, ignore_if_exists)
        else:
            catalog = self._catalogs.catalog(function.path.catalog)
            if not catalog.put_function(function, function.path.database) and not ignore_if_exists:
                raise ValidationError(_already(function))

    @staticmethod
    def _add(known: dict[K, CatalogFunction], key: K, function: CatalogFunction, ignore: bool) -> None:
        if key not in known:
            known[key] = function
        elif not ignore:
            raise ValidationError(_already(function))

    def drop(self, parts: tuple[str, ...], *, temporary: bool, system: bool, ignore_if_missing: bool) -> None:
        path = self._key(parts)
        if system:
            gone = self._system.pop(parts[-1].lower(), None) is not None
            message = (
                f"Could not drop temporary system function. A function named '{parts[-1]}' doesn't exist."
            )
        elif temporary:
            gone = self._temporary.pop(path, None) is not None
            message = (
                f"Temporary catalog function `{path.catalog}`.`{path.database}`.`{path.name}` doesn't exist"
            )
        else:
            gone = self._catalogs.catalog(path.catalog).remove_function(path.database, path.name)
            message = _missing(path)
        if not gone and not ignore_if_missing:
            raise ValidationError(message)

    def replace(self, function: CatalogFunction, *, ignore_if_missing: bool) -> None:
        """Puts a permanent function in the place of the one of its name."""
        path = function.path
        assert path is not None
        found = self._catalogs.catalog(path.catalog).replace_function(function, path.database)
        if not found and not ignore_if_missing:
            raise ValidationError(_missing(_lower(path)))

    def temporary(self) -> list[CatalogFunction]:
        """Those that live in no database, temporary system functions first."""
        return [*self._system.values(), *self._temporary.values()]

    def names(self, catalog: str, database: str) -> list[str]:
        """User function names visible from a database, sorted."""
        memory_database = self._catalogs.catalog(catalog).database(database)
        temporary = [p.name for p in self._temporary if (p.catalog, p.database) == (catalog, database)]
        return sorted({*self._system, *temporary, *memory_database.functions})

    def _key(self, parts: tuple[str, ...]) -> ObjectPath:
        return _lower(self._catalogs.qualify(parts))


def _lower(path: ObjectPath) -> ObjectPath:
    return ObjectPath(path.catalog, path.database, path.name.lower())


def _missing(path: ObjectPath) -> str:
    return f"Function {path.database}.{path.name} does not exist in Catalog {path.catalog}."


def _already(function: CatalogFunction) -> str:
    path = function.path
    if path is None:
        return (
            "Could not register temporary system function. "
            f"A function named '{function.name}' does already exist."
        )
    if function.temporary:
        return (
            f"Could not register temporary catalog function. A function "
            f"'{path.catalog}.{path.database}.{path.name}' does already exist."
        )
    return f"Function {path.database}.{path.name} already exists in Catalog {path.catalog}."
