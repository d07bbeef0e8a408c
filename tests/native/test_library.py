"""Which library is loaded, and where there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.cores import WITH_CORE
from tidemill.native import library as module
from tidemill.native.csv import plain_csv
from tidemill.native.json import plain_json
from tidemill.native.library import SWITCH, library
from tidemill.runtime.spark.shipped import package_archive

SAYS = "from tidemill.native.library import library; print(library() is not None)"


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    library.cache_clear()
    monkeypatch.setattr(module, "library", library.__wrapped__)
    return monkeypatch


@WITH_CORE
def test_it_is_switched_off(anew: pytest.MonkeyPatch) -> None:
    assert module.library() is not None
    anew.setenv(SWITCH, "off")
    assert module.library() is None


@WITH_CORE
def test_one_of_another_version_is_not_used(anew: pytest.MonkeyPatch) -> None:
    anew.setattr(module, "_VERSION", 0)
    assert module.library() is None


def test_one_for_another_machine_is_not_used(anew: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / module.NAME).write_bytes(b"no library")
    anew.setattr(module, "files", lambda package: tmp_path)
    assert module.library() is None


@WITH_CORE
@pytest.mark.usefixtures("processes")
def test_workers_find_it_in_the_package_they_are_sent(tmp_path: Path) -> None:
    program = f"import sys; sys.path.insert(0, {package_archive()!r}); {SAYS}"
    run = subprocess.run(
        [sys.executable, "-I", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert run.stdout == "True\n"


def test_without_it_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.native.csv.library", lambda: None)
    assert plain_csv(None, [], delimiter=",", quote="", null=None) is None
    monkeypatch.setattr("tidemill.native.json.library", lambda: None)
    assert plain_json(None, {}) is None
