"""An environment for tests: tables and views made by hand, functions of the registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidemill.catalog.table import CatalogObject, CatalogTable, CatalogView, Column, ObjectPath
from tidemill.errors import Position
from tidemill.functions import registry
from tidemill.functions.api import AggregateFunction, ScalarFunction
from tidemill.plan import nodes as n
from tidemill.plan.binder.binder import Binder
from tidemill.sql import statements
from tidemill.sql.parser import parse_statement, parse_type
from tidemill.user_functions.kinds import UserFunction

CATALOG, DATABASE = "default_catalog", "default_database"


@dataclass
class FakeEnvironment:
    objects: dict[ObjectPath, CatalogObject] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    functions: dict[str, UserFunction] = field(default_factory=dict)
    current_catalog: str = CATALOG
    current_database: str = DATABASE
    time_zone: str = "UTC"

    def resolve(self, path: ObjectPath) -> CatalogObject | None:
        return self.objects.get(path)

    def check_table(self, table: CatalogTable, options: Mapping[str, str], position: Position | None) -> None:
        return None

    def names_within(self, *parts: str) -> tuple[str, ...]:
        paths = [(CATALOG, DATABASE), *((p.catalog, p.database, p.name) for p in self.objects)]
        within = (p for p in paths if p[: len(parts)] == parts and len(p) > len(parts))
        return tuple(dict.fromkeys(p[len(parts)] for p in within))

    def scalar_function(self, name: str) -> ScalarFunction | None:
        return registry.scalar(name)

    def aggregate_function(self, name: str) -> AggregateFunction | None:
        return registry.aggregate(name)

    def function_table(self, name: str, argument: str) -> CatalogTable | None:
        return None

    def user_function(self, parts: tuple[str, ...], path: ObjectPath) -> UserFunction | None:
        return self.functions.get(parts[-1].lower())

    def function_names(self) -> tuple[str, ...]:
        return registry.names()

    def add_table(self, name: str, /, **columns: str) -> CatalogTable:
        table = CatalogTable(
            path=ObjectPath(CATALOG, DATABASE, name),
            columns=tuple(Column(name=c, type=parse_type(text)) for c, text in columns.items()),
            options={"connector": "filesystem"},
        )
        self.objects[table.path] = table
        return table

    def add_view(self, name: str, text: str, *columns: str) -> None:
        path = ObjectPath(CATALOG, DATABASE, name)
        self.objects[path] = CatalogView(path=path, text=text, column_names=columns)

    def bind(self, sql: str) -> n.LogicalNode:
        statement = parse_statement(sql)
        if isinstance(statement, statements.Insert):
            return Binder(self).bind_insert(statement)
        assert isinstance(statement, statements.Query)
        return Binder(self).bind_query(statement.tree)


def sample() -> FakeEnvironment:
    """Tables t(id, g, v, s), u(id, name) and a view w over t."""
    environment = FakeEnvironment()
    environment.add_table("t", id="INT NOT NULL", g="STRING", v="INT", s="STRING")
    environment.add_table("u", id="INT NOT NULL", name="STRING")
    environment.add_table("k", a="INT", b="STRING", c="BIGINT")
    environment.add_view("w", "SELECT g, v AS x FROM t WHERE v > 1")
    return environment
