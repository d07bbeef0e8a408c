"""A start-up check of the parser library."""

from __future__ import annotations

from importlib.util import find_spec

from tidemill.errors import NotSupportedError


def check_parser() -> None:
    """Raises NotSupportedError if sqlglot's compiled build is installed.

    Its compiled classes cannot be inherited from, so Flink's own syntax nodes would fail later, and
    with an error that says nothing.
    """
    if find_spec("sqlglotc") is not None:
        raise NotSupportedError(
            "The compiled parser package 'sqlglotc' is installed; Tidemill needs sqlglot's pure Python build",
            hint="Run: pip uninstall sqlglotc",
        )
