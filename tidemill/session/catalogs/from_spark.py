"""The catalog of type ``spark``: the databases and tables of one of the catalogs that Spark's session has.

Tables are read and written by the connector ``spark``; what is in the catalog is changed by Spark's own means
alone. Every look asks Spark: nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from tidemill.catalog.kinds import DEFAULT_DATABASE, CatalogDescription, CatalogKind
from tidemill.catalog.memory import Database, InMemoryCatalog
from tidemill.catalog.table import CatalogTable, CatalogView, Column, ObjectPath
from tidemill.errors import NotSupportedError
from tidemill.late import late
from tidemill.types.physical import quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemill.session.catalogs import spark_objects
else:
    spark_objects = late("tidemill.session.catalogs.spark_objects")

TYPE = "spark"
CATALOG = "catalog"
_DEFAULT_CATALOG, _DEFAULT_DATABASE = "spark_catalog", "default"

Spark: TypeAlias = "Callable[[], SparkSession]"


class SparkCatalog(InMemoryCatalog):
    outlives: ClassVar[bool] = True
    small: ClassVar[bool] = False

    def __init__(self, name: str, description: CatalogDescription, spark: Spark) -> None:
        default = description.options.get(DEFAULT_DATABASE, _DEFAULT_DATABASE)
        super().__init__(name, default, options=description.options, comment=description.comment)
        self._spark = spark

    @property
    def databases(self) -> Mapping[str, Database]:
        return SparkDatabases(self.name, self.options.get(CATALOG, _DEFAULT_CATALOG), self._spark)

    def changing(self) -> AbstractContextManager[None]:
        raise NotSupportedError(
            f"Catalog '{self.name}' is Spark's: changes of it are not supported",
            hint="Change it by Spark's means, or create the table in another catalog.",
        )


class SparkDatabases(Mapping[str, Database]):
    """``here``: the name of the catalog that Spark's ``catalog`` has here."""

    def __init__(self, here: str, catalog: str, spark: Spark) -> None:
        self._here = here
        self._catalog = catalog
        self._spark = spark

    def __getitem__(self, name: str) -> Database:
        if name not in self._names:
            raise KeyError(name)
        return Database(name=name, tables=SparkTables(self._here, self._catalog, name, self._spark))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return spark_objects.databases(self._spark(), self._catalog)


class SparkTables(dict[str, CatalogTable | CatalogView]):
    """The tables of a database, looked at when they are asked for."""

    def __init__(self, here: str, catalog: str, database: str, spark: Spark) -> None:
        super().__init__()
        self._here = here
        self._catalog = catalog
        self._database = database
        self._spark = spark

    def get(  # type: ignore[override]  # dict's overloads take a default of any type
        self, name: str, default: CatalogTable | CatalogView | None = None
    ) -> CatalogTable | None:
        """None for what Spark has no table or view of."""
        path = f"{quote(self._catalog)}.{quote(self._database)}.{quote(name)}"
        fields = spark_objects.columns(self._spark(), self._catalog, path)
        if fields is None:
            return None
        columns = tuple(Column(name=f.name, type=f.type) for f in fields)
        options = {"connector": "spark", "table": path}
        return CatalogTable(
            path=ObjectPath(self._here, self._database, name), columns=columns, options=options
        )

    def __iter__(self) -> Iterator[str]:
        return iter(spark_objects.tables(self._spark(), self._catalog, self._database))


def spark_catalogs(spark: Spark) -> CatalogKind:
    return CatalogKind(
        options=(DEFAULT_DATABASE, CATALOG), make=lambda name, options: SparkCatalog(name, options, spark)
    )
