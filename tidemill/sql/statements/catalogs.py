"""Catalogs, databases, modules, functions and models: what makes, alters and drops them."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.sql.statements.base import Drop, Options, Path, RenameTable, ResetOptions, SetOptions, Statement
from tidemill.sql.statements.tables import PhysicalColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCatalog(Drop):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDatabase(Drop):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class DropFunction(Drop):
    """``system`` is DROP TEMPORARY SYSTEM FUNCTION."""

    system: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCatalog(Statement):
    name: str
    options: Options = ()
    comment: str = ""
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetComment:
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterCatalog(Statement):
    name: str
    change: SetOptions | ResetOptions | SetComment


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDatabase(Statement):
    path: Path
    options: Options = ()
    comment: str = ""
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterDatabase(Statement):
    path: Path
    options: Options


@dataclass(frozen=True, slots=True, kw_only=True)
class UseCatalog(Statement):
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UseDatabase(Statement):
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class UseModules(Statement):
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadModule(Statement):
    name: str
    options: Options = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnloadModule(Statement):
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFunction(Statement):
    """``language`` is in upper case, JAVA where not written."""

    path: Path
    identifier: str
    language: str = "JAVA"
    temporary: bool = False
    system: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterFunction(Statement):
    """``language`` as of CreateFunction."""

    path: Path
    identifier: str
    language: str = "JAVA"
    temporary: bool = False
    system: bool = False
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateModel(Statement):
    path: Path
    inputs: tuple[PhysicalColumn, ...] = ()
    outputs: tuple[PhysicalColumn, ...] = ()
    options: Options = ()
    comment: str = ""
    temporary: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterModel(Statement):
    path: Path
    change: RenameTable | SetOptions | ResetOptions
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropModel(Drop):
    pass
