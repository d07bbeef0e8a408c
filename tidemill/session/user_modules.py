"""Loads the user functions that CREATE FUNCTION names as ``module.attribute``, and gets them to workers.

A module is looked for in ``python.files``, the script's folder, the current folder and on Python's own
path, in this order. Functions travel to workers by value, with what they use of their module and of the
modules beside it that were imported by then; only what is installed (site-packages, the standard library)
is imported there.
"""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tidemill.catalog.objects import CatalogFunction
from tidemill.errors import ValidationError
from tidemill.late import late
from tidemill.user_functions.declared import plain_function
from tidemill.user_functions.kinds import DeclarationError, UserFunction

if TYPE_CHECKING:
    from tidemill.spark_internals import pickling
else:
    pickling = late("tidemill.spark_internals.pickling")

_LIBRARIES = tuple(
    os.path.join(os.path.realpath(sysconfig.get_path(name)), "")
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_OWN = "tidemill"


def load(function: CatalogFunction, folders: Sequence[str], files: str) -> UserFunction:
    """The declared function. ``files`` is the value of ``python.files``.

    Raises ValidationError where the module or attribute is missing, fails while imported, or is none.
    """
    called = f"'{function.name}'" if function.path is None else f"'{function.path}'"
    failed = f"Cannot instantiate user-defined function {called}."
    name, attribute = _named(function, failed)
    module = _module(name, [*search_path(files), *folders, os.getcwd()], failed)
    return _declared(_attribute(module, attribute, failed), failed, f"'{function.implementation}'")


def load_installed(function: CatalogFunction, files: str) -> UserFunction:
    """As ``load``, of a module that Python finds by itself or in ``files``. What the module has imported from
    elsewhere is not its own."""
    failed = f"Cannot instantiate user-defined function '{function.path or function.name}'."
    name, attribute = _named(function, failed)
    module = _module(name, search_path(files), failed)
    found = _attribute(module, attribute, failed)
    if getattr(getattr(found, "body", found), "__module__", "") != module.__name__:
        raise ValidationError(f"{failed} '{attribute}' is not declared in module '{name}'.")
    return _declared(found, failed, f"'{function.implementation}'")


def _named(function: CatalogFunction, failed: str) -> tuple[str, str]:
    """The module, and the name in it."""
    name, dot, attribute = function.implementation.strip().rpartition(".")
    if not dot or not name or not attribute:
        raise ValidationError(f"{failed} '{function.implementation}' is not of the form 'module.attribute'.")
    return name, attribute


def _attribute(module: ModuleType, attribute: str, failed: str) -> Any:
    found = getattr(module, attribute, None)
    if found is None:
        raise ValidationError(
            f"{failed} Module '{module.__name__}' has no attribute '{attribute}'.",
            expected=_functions_in(module),
        )
    return found


def registered(name: str, given: Any) -> UserFunction:
    """A function object of the running program, made ready to travel. ValidationError where it is none."""
    module = sys.modules.get(getattr(getattr(given, "body", given), "__module__", ""))
    if module is not None:
        _ship_by_value(module)
    return _declared(given, f"Cannot register the function '{name}'.", repr(given))


def _declared(found: Any, failed: str, called: str) -> UserFunction:
    declared = found if isinstance(found, UserFunction) else plain_function(found)
    if declared is None:
        raise ValidationError(
            f"{failed} {called} is not a user function.",
            hint="Declare it with @udf, @udtf or @udaf of tidemill, or annotate the types of a function.",
        )
    _check_travels(declared, failed)
    return declared


def _check_travels(declared: UserFunction, failed: str) -> None:
    try:
        pickling.pickled(declared.body)
    except Exception as e:
        raise ValidationError(
            f"{failed} It cannot be sent to Spark's Python workers: {e}.",
            hint="Make what cannot be sent (locks, connections, open files) when the function first runs.",
        ) from e


def search_path(files: str) -> list[str]:
    """The entries of ``python.files`` as entries of a module search path."""
    given = [text.strip() for text in files.split(",") if text.strip()]
    return [_search_entry(os.path.realpath(os.path.expanduser(text))) for text in given]


def _search_entry(path: str) -> str:
    if not os.path.exists(path):
        raise ValidationError(f"'python.files' names '{path}', which does not exist")
    return os.path.dirname(path) if path.endswith(".py") else path


def _functions_in(module: ModuleType) -> tuple[str, ...]:
    return tuple(sorted(k for k, v in vars(module).items() if isinstance(v, UserFunction)))


def _module(name: str, folders: list[str], failed: str) -> ModuleType:
    with _searching(folders):
        _forget_others(name.partition(".")[0])
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as e:
            raise ValidationError(
                f"{failed} No module named '{e.name}'.",
                hint="Put it beside the script, or name its file or folder in 'python.files'.",
            ) from e
        except DeclarationError as e:
            raise ValidationError(f"{failed} {e}.") from e
        except (Exception, SystemExit) as e:
            raise ValidationError(f"{failed} Module '{name}' fails: {type(e).__name__}: {e}") from e
    _ship_by_value(module)
    return module


@contextmanager
def _searching(folders: list[str]) -> Iterator[None]:
    before = list(sys.path)
    sys.path[:0] = dict.fromkeys(folders)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before


def _forget_others(top: str) -> None:
    """Modules that another session loaded from elsewhere must not stand in for the ones meant here."""
    ours = {name.partition(".")[0] for name in pickling.sent_by_value()}
    for name in {*ours, top} - {_OWN, "__main__"}:
        loaded = _file_of(sys.modules.get(name))
        if loaded and not _is_library(loaded) and _found_at(name) != loaded:
            for other in [k for k in sys.modules if k == name or k.startswith(f"{name}.")]:
                del sys.modules[other]


def _found_at(name: str) -> str:
    """The file that an import of a top-level module would read now."""
    spec = PathFinder.find_spec(name)
    return os.path.realpath(spec.origin) if spec is not None and spec.origin else ""


def _ship_by_value(module: ModuleType) -> None:
    file = _file_of(module)
    top = module.__name__.partition(".")[0]
    if not file or _is_library(file) or top in (_OWN, "__main__"):
        return
    root = _root_of(top, _file_of(sys.modules[top]) or file)
    for other in list(sys.modules.values()):
        if _is_beside(other, root):
            pickling.send_by_value(other)


def _is_beside(module: ModuleType | None, root: str) -> bool:
    file = _file_of(module)
    if module is None or not file.startswith(root) or _is_library(file):
        return False
    return module.__name__.partition(".")[0] not in (_OWN, "__main__") and module.__name__ in sys.modules


def _file_of(module: ModuleType | None) -> str:
    file = getattr(module, "__file__", None)
    return os.path.realpath(file) if isinstance(file, str) else ""


def _root_of(top: str, file: str) -> str:
    """The folder (or archive) that holds the top-level module or package."""
    place = Path(file).parent
    is_package = Path(file).name.startswith("__init__.")
    return os.path.join(place.parent if is_package else place, "")


def _is_library(file: str) -> bool:
    return file.startswith(_LIBRARIES)
