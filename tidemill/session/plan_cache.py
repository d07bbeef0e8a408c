"""What was planned before and would be planned again the same.

A plan follows from a statement and from what its planning is told of the outside: what names mean, which
functions there are, how large tables are. So what was told is kept with the plan, and asked again for the
next query of the same text. Where all answers are the same, so is the plan, which need not be made; a table,
a view, a function or a file that changed is seen at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tidemill.catalog.table import CatalogObject, CatalogTable, ObjectPath
from tidemill.errors import Position, TidemillError
from tidemill.functions.api import AggregateFunction, ScalarFunction
from tidemill.last_used import LastUsed
from tidemill.plan.binder.environment import Environment
from tidemill.user_functions.kinds import UserFunction

T = TypeVar("T")
W = TypeVar("W")
A = TypeVar("A")

Question = Callable[[W], Any]
"""Of the outside, to be asked again; answers are compared by value."""


@dataclass(frozen=True, slots=True)
class _Known(Generic[W, T]):
    """``made_from`` is kept for keys that are identities."""

    value: T
    told: tuple[tuple[Question[W], Any], ...]
    made_from: object

    def holds(self, outside: W) -> bool:
        try:
            return all(_is(question(outside), answer) for question, answer in self.told)
        except TidemillError:  # who asks for it in making the plan says where
            return False


class PlanCache(Generic[W, T]):
    """What was made last, a hundred at the most; for any number of threads."""

    def __init__(self) -> None:
        self._known = LastUsed[_Known[W, T]](most=100)

    def get(
        self, key: Hashable, outside: W, make: Callable[[DependencyRecorder[W]], T], made_from: object = None
    ) -> T:
        """What ``make`` made for ``key``, where the ``outside`` tells what it told then; else it makes it."""
        known = self._known.get(key)
        if known is not None and known.holds(outside):
            return known.value
        asked = DependencyRecorder(outside)
        value = make(asked)
        self._known.keep(key, _Known(value, tuple(asked.told), made_from))
        return value


class DependencyRecorder(Generic[W]):
    """The outside, by questions that are noted."""

    def __init__(self, outside: W) -> None:
        self._outside = outside
        self.told: list[tuple[Question[W], Any]] = []

    def __call__(self, question: Callable[[W], A]) -> A:
        answer = question(self._outside)
        self.told.append((question, answer))
        return answer


def _is(answer: object, before: object) -> bool:
    return answer is before or (type(answer) is type(before) and answer == before)


@dataclass(frozen=True, slots=True)
class RecordedEnvironment:
    """An environment of the binder whose names are asked for. What else it is (where names begin, options,
    the time zone) belongs into the key."""

    environment: Environment
    asked: DependencyRecorder[Environment]

    @property
    def current_catalog(self) -> str:
        return self.environment.current_catalog

    @property
    def current_database(self) -> str:
        return self.environment.current_database

    @property
    def options(self) -> Mapping[str, str]:
        return self.environment.options

    @property
    def time_zone(self) -> str:
        return self.environment.time_zone

    def resolve(self, path: ObjectPath) -> CatalogObject | None:
        return self.asked(lambda outside: outside.resolve(path))

    def check_table(self, table: CatalogTable, options: Mapping[str, str], position: Position | None) -> None:
        self.asked(lambda outside: outside.check_table(table, options, position))

    def object_names(self, catalog: str, database: str) -> tuple[str, ...]:
        return self.asked(lambda outside: outside.object_names(catalog, database))

    def scalar_function(self, name: str) -> ScalarFunction | None:
        return self.asked(lambda outside: outside.scalar_function(name))

    def aggregate_function(self, name: str) -> AggregateFunction | None:
        return self.asked(lambda outside: outside.aggregate_function(name))

    def function_names(self) -> tuple[str, ...]:
        return self.asked(lambda outside: outside.function_names())

    def function_table(self, name: str, argument: str) -> CatalogTable | None:
        return self.asked(lambda outside: outside.function_table(name, argument))

    def user_function(self, parts: tuple[str, ...], path: ObjectPath) -> UserFunction | None:
        return self.asked(lambda outside: outside.user_function(parts, path))
