from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import pytest

from tidemill.errors import NotSupportedError
from tidemill.sql.probe import check_parser


def test_the_installed_parser_is_fine() -> None:
    check_parser()


def test_a_compiled_build_is_named_with_the_way_out() -> None:
    asked: list[str] = []

    def installed(name: str) -> str:
        asked.append(name)
        return "30.0.0"

    with pytest.raises(NotSupportedError, match=r"sqlglotc 30\.0\.0") as caught:
        check_parser(installed)
    assert asked == ["sqlglotc"]
    assert "pip uninstall sqlglotc" in caught.value.hint


def test_without_it_nothing_happens() -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    check_parser(missing)
