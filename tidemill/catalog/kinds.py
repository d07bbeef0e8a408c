"""What CREATE CATALOG can make, by its option 'type', and where a session's catalogs are listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tidemill.catalog import memory
from tidemill.catalog.memory import InMemoryCatalog
from tidemill.errors import ValidationError, unsupported_options

DEFAULT_DATABASE = "default-database"
_ALWAYS = ("property-version", "type")


@dataclass(frozen=True, slots=True)
class CatalogDescription:
    """What a catalog is made from."""

    options: Mapping[str, str] = field(hash=False)
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogKind:
    """``options``: those it knows besides 'type'; ``make`` connects to nothing yet. ``takes_others``: any
    other option is for the outside system that it leads to."""

    options: tuple[str, ...]
    make: Callable[[str, CatalogDescription], InMemoryCatalog]
    takes_others: bool = False


class CatalogStore(Protocol):
    """Lists the catalogs that CREATE CATALOG has made, for sessions to come."""

    def names(self) -> Iterable[str]: ...

    def get(self, name: str) -> CatalogDescription: ...

    def put(self, name: str, description: CatalogDescription) -> None:
        """Adds a catalog, or takes down how it is now."""
        ...

    def remove(self, name: str) -> None: ...


def _in_memory(name: str, description: CatalogDescription) -> InMemoryCatalog:
    database = description.options.get(DEFAULT_DATABASE, "default")
    return InMemoryCatalog(name, database, options=description.options, comment=description.comment)


IN_MEMORY = CatalogKind(options=(DEFAULT_DATABASE,), make=_in_memory)
KINDS: Mapping[str, CatalogKind] = {memory.TYPE: IN_MEMORY}


def make_catalog(
    kinds: Mapping[str, CatalogKind], name: str, description: CatalogDescription
) -> InMemoryCatalog:
    """ValidationError, in Flink's words, for a type or options that there are not."""
    options = description.options
    identifier = options.get("type")
    if identifier is None:
        raise ValidationError(
            "Catalog options do not contain an option key 'type' for discovering a catalog.",
            expected=tuple(sorted(kinds)),
            hint=f"Catalog '{name}' is not made.",
        )
    kind = kinds.get(identifier)
    if kind is None:
        raise ValidationError(
            f"Could not find any factory for identifier '{identifier}' that implements "
            "'org.apache.flink.table.factories.CatalogFactory' in the classpath.\n\n"
            "Available factory identifiers are:\n\n" + "\n".join(sorted(kinds)),
            hint=f"Catalog '{name}' is not made.",
        )
    declared = (*kind.options, *_ALWAYS)
    unknown = set(options) - set(declared)
    if unknown and not kind.takes_others:
        raise ValidationError(
            unsupported_options(identifier, unknown, set(declared) - {"type"}),
            hint=f"Catalog '{name}' is not made.",
        )
    return kind.make(name, description)
