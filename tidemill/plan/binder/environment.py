"""The names, options and time zone that the binder reads. The session provides them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tidemill.catalog.table import CatalogObject, CatalogTable, ObjectPath
from tidemill.errors import Position
from tidemill.functions.api import AggregateFunction, ScalarFunction
from tidemill.user_functions.kinds import UserFunction


class Environment(Protocol):
    """The catalogs and settings as one statement sees them; nothing changes while it is bound."""

    @property
    def current_catalog(self) -> str: ...

    @property
    def current_database(self) -> str: ...

    @property
    def options(self) -> Mapping[str, str]:
        """The session's configuration, as texts by key."""
        ...

    @property
    def time_zone(self) -> str: ...

    def resolve(self, path: ObjectPath) -> CatalogObject | None:
        """The object at a full path; temporary objects shadow permanent ones."""
        ...

    def check_table(self, table: CatalogTable, options: Mapping[str, str], position: Position | None) -> None:
        """NotPermittedError if the table may not be read or written with these options."""
        ...

    def names_within(self, *parts: str) -> tuple[str, ...]:
        """Of nothing the catalogs, of a catalog its databases, of a database its tables and views. Empty if
        there is no such catalog or database."""
        ...

    def scalar_function(self, name: str) -> ScalarFunction | None:
        """A built-in or user-defined scalar function or operator; names do not depend on case."""
        ...

    def aggregate_function(self, name: str) -> AggregateFunction | None: ...

    def function_names(self) -> tuple[str, ...]: ...

    def function_table(self, name: str, argument: str) -> CatalogTable | None:
        """The table that the built-in table function ``name`` of a module gives; None for any other name."""
        ...

    def user_function(self, parts: tuple[str, ...], path: ObjectPath) -> UserFunction | None:
        """The user function called ``parts``; ``path`` is the full name. None if there is no such function,
        or if a built-in function has precedence. ValidationError if its module cannot be loaded."""
        ...
