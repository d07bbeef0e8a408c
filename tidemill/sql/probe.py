"""A start-up check of the parser library; imports nothing of the grammar, which would fail first."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

from tidemill.errors import NotSupportedError

COMPILED_BUILD = "sqlglotc"


def check_parser(installed_version: Callable[[str], str] = version) -> None:
    """Raises NotSupportedError if sqlglot's compiled build lies over the pure Python one.

    Its distribution replaces modules of sqlglot by compiled ones, from which interpreted classes such
    as Flink's own syntax nodes cannot inherit: what follows would be a TypeError that explains nothing.
    """
    try:
        tree = installed_version(COMPILED_BUILD)
    except PackageNotFoundError:
        return
    raise NotSupportedError(
        f"{COMPILED_BUILD} {tree} is installed, a compiled sqlglot; Tidemill needs the pure Python one",
        hint=f"Run: pip uninstall {COMPILED_BUILD} && pip install --force-reinstall --no-deps sqlglot",
    )
