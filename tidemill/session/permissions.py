"""What the statements of a session may reach: files, connectors, Python functions, Spark's settings.

Whoever makes a session says so; a program's own may reach everything. Names are looked at where statements
bring them in: each table when the binder takes it up, with its hints; each option when it is set; each other
file before anybody looks whether it is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.catalog.table import CatalogTable
from tidemill.config import history_options
from tidemill.config.cluster_options import TEMPORARY_DIRECTORY
from tidemill.config.execution_options import (
    CHECKPOINT_DIRECTORY,
    RECOVERY_PATH,
    SAVEPOINT_DIRECTORY,
    SAVEPOINT_TARGET,
)
from tidemill.config.python_options import PYTHON_FILES
from tidemill.config.registry import SPARK_PREFIX
from tidemill.config.table_options import CATALOG_STORE_PATH
from tidemill.connectors import registry
from tidemill.errors import NotPermittedError, Position
from tidemill.files.fence import ANY, OPEN, Fence

_PLACES = frozenset(
    key
    for option in (
        CHECKPOINT_DIRECTORY,
        SAVEPOINT_DIRECTORY,
        RECOVERY_PATH,
        SAVEPOINT_TARGET,
        TEMPORARY_DIRECTORY,
        history_options.DIRECTORY,
        CATALOG_STORE_PATH,
    )
    for key in option.keys
)
_SPARK = "spark"
_WHO = "The gateway's options say what its users may reach: docs/gateway.md."


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """``connectors`` and ``modules``: names, ``ANY`` for all. A module's name is good for the modules in it,
    and for those that Python finds by itself alone; ``ANY`` also for files of the user's. ``spark``: whether
    options may be Spark's own, which name classes, files and programs."""

    fence: Fence = OPEN
    connectors: tuple[str, ...] = (ANY,)
    modules: tuple[str, ...] = (ANY,)
    spark: bool = True

    def check_table(
        self, table: CatalogTable, options: Mapping[str, str], position: Position | None = None
    ) -> None:
        """NotPermittedError where the table's connector, or a place that its options name, is not for this
        session; ``options``: with hints applied."""
        identifier = options.get("connector", "")
        if not self.fence.is_open or ANY not in self.connectors:
            self._check_table(identifier, table, options, position)

    def _check_table(
        self, identifier: str, table: CatalogTable, options: Mapping[str, str], position: Position | None
    ) -> None:
        if identifier not in registry.identifiers():
            return  # who looks for it says so
        self.check_connector(identifier, position)
        for option, place in registry.connector(options).named_paths(options):
            self.check_place(place, f"Option '{option}' of table '{table.path}'", position)

    def check_catalog(self, identifier: str, options: Mapping[str, str]) -> None:
        """As ``check_table``, for a catalog that a connector brings."""
        self.check_connector(identifier)
        for option, place in registry.connector({"connector": identifier}).named_paths(options):
            self.check_place(place, f"Option '{option}' of the catalog")

    def check_connector(self, identifier: str, position: Position | None = None) -> None:
        """What goes to Spark as it is can be confined to no places: it must be named itself then."""
        named = identifier in self.connectors
        if named or (ANY in self.connectors and (identifier != _SPARK or ANY in self.fence.allowed)):
            return
        raise NotPermittedError(
            f"This session may not use the connector '{identifier}'.", position=position, hint=_WHO
        )

    def check_place(self, location: str, what: str, position: Position | None = None) -> None:
        """NotPermittedError, the same whether there is anything at ``location``; ``what`` names it."""
        if not self.fence.permits(location):
            raise NotPermittedError(
                f"{what} names a path that this session may not use.", position=position, hint=_WHO
            )

    def check_option(self, key: str, value: str) -> None:
        """NotPermittedError for an option that names what is not for this session."""
        if key in _PLACES and value:
            self.check_place(value, f"Option '{key}'")
        elif key == PYTHON_FILES.key and value and ANY not in self.modules:
            raise NotPermittedError(f"Option '{key}': this session may not bring Python files.", hint=_WHO)
        elif key.startswith((SPARK_PREFIX, "spark.")) and not self.spark:
            raise NotPermittedError(
                f"Option '{key}': Spark has been started, and this session may not change its settings.",
                hint=_WHO,
            )

    def check_options(self, options: Mapping[str, str]) -> None:
        for key, value in options.items():
            self.check_option(key, value)

    def check_function(self, name: str, implementation: str) -> None:
        """NotPermittedError where the module of 'module.attribute' is not for this session."""
        module = implementation.strip().rpartition(".")[0]
        if ANY not in self.modules and not any(_is_in(module, one) for one in self.modules):
            raise NotPermittedError(
                f"Function '{name}': this session may not use the module '{module}'.", hint=_WHO
            )

    @property
    def own_files(self) -> bool:
        """Whether functions may come from files of the user's."""
        return ANY in self.modules


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


EVERYTHING = Permissions()
