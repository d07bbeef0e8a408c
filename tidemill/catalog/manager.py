"""The catalogs of one session: current names, temporary objects over permanent ones, resolution.

A name of one part is looked for in the current database, of two in the current catalog. A temporary
object shadows a permanent one of the same path. Error texts are Flink's.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from tidemill.catalog import memory
from tidemill.catalog.functions import FunctionCatalog
from tidemill.catalog.kinds import KINDS, CatalogDescription, CatalogKind, CatalogStore, make_catalog
from tidemill.catalog.memory import InMemoryCatalog
from tidemill.catalog.models import ModelCatalog
from tidemill.catalog.table import CatalogFrame, CatalogObject, CatalogTable, CatalogView, ObjectPath
from tidemill.errors import ValidationError

DEFAULT_CATALOG = "default_catalog"
DEFAULT_DATABASE = "default_database"


class CatalogManager:
    """Mutable, one per session. ``kinds``: what CREATE CATALOG can make; ``store``: lists what it made."""

    def __init__(self, kinds: Mapping[str, CatalogKind] = KINDS, store: CatalogStore | None = None) -> None:
        catalog, database = DEFAULT_CATALOG, DEFAULT_DATABASE
        self.catalogs = {catalog: InMemoryCatalog(catalog, database, options={"type": memory.TYPE})}
        self._kinds = kinds
        self._store = store
        self._listed: set[str] = set()
        self.temporary: dict[ObjectPath, CatalogObject] = {}
        self.functions = FunctionCatalog(self)
        self.models = ModelCatalog(self)
        self.current_catalog = catalog
        self.current_database = database

    def qualify(self, parts: tuple[str, ...]) -> ObjectPath:
        """The full path of a name of one to three parts."""
        if not 1 <= len(parts) <= 3:
            raise ValidationError(f"A name has one to three parts: {'.'.join(parts)}")
        full = (self.current_catalog, self.current_database)[: 3 - len(parts)] + parts
        return ObjectPath(*full)

    def qualify_database(self, parts: tuple[str, ...]) -> tuple[str, str]:
        """(catalog, database) of a database name of one or two parts."""
        if not 1 <= len(parts) <= 2:
            raise ValidationError(f"A database name has one or two parts: {'.'.join(parts)}")
        return (self.current_catalog, parts[0]) if len(parts) == 1 else (parts[0], parts[1])

    def catalog(self, name: str) -> InMemoryCatalog:
        found = self.catalogs.get(name)
        if found is None:
            raise ValidationError(f"Catalog {name} does not exist", expected=tuple(sorted(self.catalogs)))
        return found

    def described(self, name: str) -> InMemoryCatalog:
        """As ``catalog``, in the words of SHOW CREATE and DESCRIBE."""
        if name not in self.catalogs:
            raise ValidationError(
                f"Cannot obtain metadata information from Catalog {name}.",
                expected=tuple(sorted(self.catalogs)),
            )
        return self.catalogs[name]

    def find(self, path: ObjectPath) -> CatalogObject | None:
        """What the path names, a temporary object first."""
        return self.temporary.get(path) or self.find_permanent(path)

    def find_permanent(self, path: ObjectPath) -> CatalogTable | CatalogView | None:
        catalog = self.catalogs.get(path.catalog)
        database = catalog.databases.get(path.database) if catalog else None
        return database.tables.get(path.name) if database else None

    def nearest(self, parts: tuple[str, ...]) -> str:
        """The existing table or view whose name looks most like ``parts``; '' where none does."""
        path = self.qualify(parts)
        names = {p.name.lower(): p.name for p in self.paths(path.catalog, path.database)}
        close = difflib.get_close_matches(path.name.lower(), names, n=1, cutoff=0.6)
        return names[close[0]] if close else ""

    def names_within(self, *parts: str) -> tuple[str, ...]:
        """Of nothing the catalogs, of a catalog its databases, of a database its tables and views. Empty if
        there is no such catalog or database."""
        if not parts:
            return tuple(self.catalogs)
        if len(parts) == 1:
            return tuple(self.catalogs[parts[0]].databases) if parts[0] in self.catalogs else ()
        return tuple(p.name for p in self.paths(*parts)) if len(parts) == 2 else ()

    def paths(self, catalog: str, database: str) -> list[ObjectPath]:
        """All tables and views of a database, temporary ones included, in the order of their names."""
        return sorted(set(self._paths(catalog, database)))

    def _paths(self, catalog: str, database: str) -> Iterator[ObjectPath]:
        known = self.catalogs.get(catalog)
        held = known.databases.get(database) if known else None
        if held is not None:
            yield from (ObjectPath(catalog, database, name) for name in held.tables)
        yield from (p for p in self.temporary if (p.catalog, p.database) == (catalog, database))

    # -- catalogs and databases

    def refresh(self) -> None:
        """Before each statement: takes what other sessions have changed."""
        if self._store is not None:
            self._list(self._store)
        for catalog in self.catalogs.values():
            catalog.refresh()

    def _list(self, store: CatalogStore) -> None:
        names = set(store.names())
        for name in sorted(names - set(self.catalogs)):
            description = store.get(name)
            self.catalogs[name] = self.made(name, description.options, description.comment)
        for name in self._listed - names - {self.current_catalog}:
            self.catalogs.pop(name, None)
        self._listed = names

    def made(self, name: str, options: Mapping[str, str], comment: str | None) -> InMemoryCatalog:
        """A catalog of what CREATE CATALOG says, which nobody can name yet."""
        return make_catalog(self._kinds, name, CatalogDescription(options, comment))

    def create_catalog(
        self,
        name: str,
        options: Mapping[str, str],
        *,
        comment: str | None = None,
        ignore_if_exists: bool = False,
    ) -> None:
        if name in self.catalogs:
            if ignore_if_exists:
                return
            raise ValidationError(f"Catalog {name} already exists.")
        self.catalogs[name] = self.made(name, options, comment)
        if self._store is not None:
            self._store.put(name, CatalogDescription(options, comment))

    def alter_catalog(self, name: str, options: Mapping[str, str], comment: str | None) -> None:
        """What is in it stays."""
        if name not in self.catalogs:
            raise ValidationError(
                f"Catalog {name} does not exist in the catalog store.", expected=tuple(sorted(self.catalogs))
            )
        made, before = self.made(name, options, comment), self.catalogs[name]
        before.options, before.comment = made.options, comment
        if self._store is not None:
            self._store.put(name, CatalogDescription(options, comment))

    def drop_catalog(self, name: str, *, ignore_if_missing: bool) -> None:
        if name not in self.catalogs:
            if ignore_if_missing:
                return
            raise ValidationError(f"Catalog {name} does not exist.", expected=tuple(sorted(self.catalogs)))
        if name == self.current_catalog:
            raise ValidationError("Cannot drop a catalog which is currently in use.")
        del self.catalogs[name]
        if self._store is not None:
            self._store.remove(name)

    def use_catalog(self, name: str) -> None:
        if name not in self.catalogs:
            raise ValidationError(
                f"A catalog with name [{name}] does not exist.", expected=tuple(sorted(self.catalogs))
            )
        self.current_catalog = name
        self.current_database = self.catalogs[name].default_database

    def use_database(self, catalog: str, database: str) -> None:
        if catalog not in self.catalogs:
            raise ValidationError(
                f"A catalog with name [{catalog}] does not exist.", expected=tuple(sorted(self.catalogs))
            )
        if database not in self.catalogs[catalog].databases:
            raise ValidationError(
                f"A database with name [{database}] does not exist in the catalog: [{catalog}].",
                expected=tuple(sorted(self.catalogs[catalog].databases)),
            )
        self.current_catalog, self.current_database = catalog, database

    def drop_database(self, catalog: str, database: str, *, ignore_if_missing: bool, cascade: bool) -> None:
        if (catalog, database) == (self.current_catalog, self.current_database):
            raise ValidationError("Cannot drop a database which is currently in use.")
        self.catalog(catalog).drop_database(database, ignore_if_missing=ignore_if_missing, cascade=cascade)

    # -- tables and views

    def create(self, entry: CatalogObject, *, ignore_if_exists: bool = False) -> bool:
        """Adds a table or view where its ``temporary`` says; False where the name was taken and ignored."""
        if not isinstance(entry, CatalogFrame) and not entry.temporary:
            return self.catalog(entry.path.catalog).put(entry, ignore_if_exists=ignore_if_exists)
        if entry.path not in self.temporary:
            self.temporary[entry.path] = entry
            return True
        if ignore_if_exists:
            return False
        raise ValidationError(f"Temporary table '{quoted(entry.path)}' already exists")

    def replace(self, entry: CatalogTable | CatalogView) -> None:
        """Puts a changed table or view in the place of the one of its path."""
        if entry.temporary:
            self.temporary[entry.path] = entry
        else:
            self.catalog(entry.path.catalog).replace(entry)

    def drop(self, path: ObjectPath, *, view: bool, temporary: bool, ignore_if_missing: bool) -> None:
        """DROP [TEMPORARY] TABLE / VIEW."""
        word = "View" if view else "Table"
        if temporary:
            self._drop_temporary(path, view, ignore_if_missing)
            return
        if path in self.temporary and isinstance(self.temporary[path], CatalogTable) != view:
            raise ValidationError(
                f"Temporary {word.lower()} with identifier '{quoted(path)}' exists. "
                f"Drop it first before removing the permanent {word.lower()}."
            )
        entry = self.find_permanent(path)
        if entry is not None and isinstance(entry, CatalogView) == view:
            self.catalog(path.catalog).remove(path)
        elif not ignore_if_missing:
            raise ValidationError(
                f"{word} with identifier '{path}' does not exist.", hint=_other_kind(entry, path, view)
            )

    def _drop_temporary(self, path: ObjectPath, view: bool, ignore_if_missing: bool) -> None:
        entry = self.temporary.get(path)
        if entry is not None and isinstance(entry, CatalogTable) != view:
            del self.temporary[path]
        elif not ignore_if_missing:
            raise ValidationError(f"Temporary table or view with identifier '{path}' does not exist.")

    def rename(self, path: ObjectPath, name: str) -> None:
        """Gives a permanent table or view another name in its database."""
        entry = self.find_permanent(path)
        if entry is None:
            raise ValidationError(f"Table with identifier '{path}' does not exist.")
        self.catalog(path.catalog).rename(entry, name)


def quoted(path: ObjectPath) -> str:
    """The path as Flink prints it in messages and SHOW CREATE TABLE, each part in backquotes."""
    return ".".join("`" + p.replace("`", "``") + "`" for p in (path.catalog, path.database, path.name))


def _other_kind(entry: CatalogObject | None, path: ObjectPath, view: bool) -> str:
    if entry is None:
        return ""
    have, word = ("table", "TABLE") if view else ("view", "VIEW")
    return f"'{path.name}' is a {have}: use DROP {word}."
