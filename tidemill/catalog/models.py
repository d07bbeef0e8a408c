"""Models of a session: permanent ones live in their databases, temporary ones hide those of their name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tidemill.catalog.functions import Catalogs
from tidemill.catalog.memory import Database
from tidemill.catalog.objects import CatalogModel
from tidemill.catalog.table import ObjectPath
from tidemill.errors import ValidationError


class ModelCatalog:
    """What CREATE MODEL made. Error texts are Flink's."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs
        self.temporary: dict[ObjectPath, CatalogModel] = {}

    def find(self, path: ObjectPath) -> CatalogModel | None:
        """The model at ``path``, the temporary one first."""
        return self.temporary.get(path) or self.find_permanent(path)

    def find_permanent(self, path: ObjectPath) -> CatalogModel | None:
        catalog = self._catalogs.catalogs.get(path.catalog)
        database = catalog.databases.get(path.database) if catalog else None
        return database.models.get(path.name) if database else None

    def names(self, catalog: str, database: str) -> list[str]:
        """The permanent ones of a database, which must exist."""
        return sorted(self._catalogs.catalog(catalog).database(database).models)

    def create(self, model: CatalogModel, *, ignore_if_exists: bool) -> None:
        if not model.temporary:
            with self._changing(model.path) as database:
                _add(database, model, ignore_if_exists=ignore_if_exists)
        elif model.path not in self.temporary:
            self.temporary[model.path] = model
        elif not ignore_if_exists:
            raise ValidationError(f"Temporary model '{model.path}' already exists")

    def replace(self, model: CatalogModel) -> None:
        """Puts a changed permanent model in the place of the one of its path."""
        with self._changing(model.path) as database:
            database.models[model.path.name] = model

    def rename(self, model: CatalogModel, name: str) -> None:
        path = replace(model.path, name=name)
        with self._changing(path) as database:
            _add(database, replace(model, path=path), ignore_if_exists=False)
            del database.models[model.path.name]

    def drop(self, path: ObjectPath, *, temporary: bool, ignore_if_missing: bool) -> None:
        if temporary:
            gone, kind = self.temporary.pop(path, None), "Temporary model"
        elif path in self.temporary:
            raise ValidationError(
                f"Temporary model with identifier '{path}' exists. Drop it first before removing the "
                "permanent model."
            )
        else:
            gone, kind = self.find_permanent(path), "Model"
            if gone is not None:
                with self._changing(path) as database:
                    database.models.pop(path.name, None)
        if gone is None and not ignore_if_missing:
            raise ValidationError(f"{kind} with identifier '{path}' does not exist.")

    @contextmanager
    def _changing(self, path: ObjectPath) -> Iterator[Database]:
        catalog = self._catalogs.catalog(path.catalog)
        with catalog.changing():
            yield catalog.database(path.database)


def _add(database: Database, model: CatalogModel, *, ignore_if_exists: bool) -> None:
    path = model.path
    if path.name not in database.models:
        database.models[path.name] = model
    elif not ignore_if_exists:
        raise ValidationError(f"Model {path.database}.{path.name} already exists in Catalog {path.catalog}.")
