"""A cache of plans, validated before each use.

A plan depends on its statement and on its environment: the meaning of names, the functions, the sizes of
tables. The cache stores a plan with its dependencies, which are questions to the environment and their
answers. For the next query of the same text it asks the questions again. If all answers are equal, the plan
is reused. A changed table, view, function or file thus takes effect at once.
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
"""A question to the environment, which can be repeated; answers are compared by value."""


@dataclass(frozen=True, slots=True)
class _CachedPlan(Generic[W, T]):
    """``answers``: the dependencies. ``made_from``: referenced, so that an id in the cache key is not
    reused."""

    value: T
    answers: tuple[tuple[Question[W], Any], ...]
    made_from: object

    def holds(self, outside: W) -> bool:
        try:
            return all(_is_equal(question(outside), answer) for question, answer in self.answers)
        except TidemillError:  # planning again raises the error with its position
            return False


class PlanCache(Generic[W, T]):
    """The hundred most recently used plans; any thread may call."""

    def __init__(self) -> None:
        self._plans = LastUsed[_CachedPlan[W, T]](most=100)

    def get(
        self, key: Hashable, outside: W, make: Callable[[DependencyRecorder[W]], T], made_from: object = None
    ) -> T:
        """The cached value for ``key`` if the answers of ``outside`` are unchanged; otherwise calls
        ``make``."""
        cached = self._plans.get(key)
        if cached is not None and cached.holds(outside):
            return cached.value
        recorder = DependencyRecorder(outside)
        value = make(recorder)
        self._plans.keep(key, _CachedPlan(value, tuple(recorder.answers), made_from))
        return value


class DependencyRecorder(Generic[W]):
    """Asks the environment, and records all questions and answers."""

    def __init__(self, outside: W) -> None:
        self._outside = outside
        self.answers: list[tuple[Question[W], Any]] = []

    def __call__(self, question: Callable[[W], A]) -> A:
        answer = question(self._outside)
        self.answers.append((question, answer))
        return answer


def _is_equal(answer: object, before: object) -> bool:
    return answer is before or (type(answer) is type(before) and answer == before)


@dataclass(frozen=True, slots=True)
class RecordedEnvironment:
    """A binder's environment that records lookups of names. Its other properties (current catalog and
    database, options, time zone) belong in the cache key."""

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
