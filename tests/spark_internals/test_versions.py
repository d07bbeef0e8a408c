"""Features are off in a Spark that they were not written for; needed functions say what is missing."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark import SparkContext

from tidemill.errors import SetupError
from tidemill.spark_internals import versions
from tidemill.spark_internals.class_lookups import remember_classes
from tidemill.spark_internals.executed_plans import operators
from tidemill.spark_internals.frames import of_unknown_size
from tidemill.spark_internals.pipelined import NotPipelined, tasks_at_once
from tidemill.spark_internals.results import local_stream
from tidemill.spark_internals.sessions import set_all


class Context:
    """Of a Spark that answers no question but that for its version."""

    def __init__(self, version: str) -> None:
        self.version = version


class Conf(dict[str, str]):
    set = dict.__setitem__


class Session:
    """Of a Spark without any private part."""

    def __init__(self) -> None:
        self.conf = Conf()


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the application that runs one of a given version."""

    def begin(version: str) -> Any:
        context = Context(version)
        monkeypatch.setattr(SparkContext, "_active_spark_context", context)
        return context

    return begin


@pytest.mark.parametrize(
    ("version", "is_on"), [("4.3.0", True), ("4.3.7-SNAPSHOT", True), ("4.30.0", False), ("4.1.4", False)]
)
def test_features_are_for_one_version(running: Any, version: str, is_on: bool) -> None:
    running(version)
    assert {versions.is_on(feature) for feature in versions.FEATURES} == {is_on}


def test_one_warning_names_all_that_is_off(running: Any, caplog: pytest.LogCaptureFixture) -> None:
    versions.check_version(running("4.3.1"))
    assert caplog.messages == []
    context = running("4.4.0")
    with caplog.at_level(logging.WARNING):
        versions.check_version(context)
        versions.check_version(context)
    (said,) = caplog.messages
    assert said.startswith("Spark 4.4.0: these features were written for Spark 4.3 and are off")
    assert all(f"{feature.name} ({feature.without})" in said for feature in versions.FEATURES)


def test_every_feature_is_listed_and_asked_for() -> None:
    declared = {name: value for name, value in vars(versions).items() if isinstance(value, versions.Feature)}
    assert set(declared.values()) == set(versions.FEATURES)
    sources = Path(versions.__file__).parents[1].rglob("*.py")
    asked = {name for path in sources for name in re.findall(r"is_on\((\w+)\)", path.read_text())}
    assert set(declared) <= asked


def test_what_is_off_touches_no_private_part(running: Any) -> None:
    """None of these arguments is real: an access that was used would fail."""
    running("4.4.0")
    bare: Any = object()
    session: Any = Session()
    remember_classes(bare)
    assert local_stream(bare) is None
    assert operators(bare, 10) == []
    assert of_unknown_size(bare) is bare
    with pytest.raises(NotPipelined, match=r"they were not written for Spark 4\.4\.0"):
        tasks_at_once(bare, None)
    set_all(session, {"a": "1", "b": "x y"})
    assert session.conf == {"a": "1", "b": "x y"}


@pytest.mark.parametrize(
    "missing",
    [
        Py4JError("An error occurred while calling o5.size. Trace:\nMethod size([]) does not exist"),
        Py4JError("org.apache.spark.X does not exist in the JVM"),
        TypeError("'JavaPackage' object is not callable"),
        AttributeError("'DataFrame' object has no attribute '_jdf'"),
        TypeError("to_arrow_schema() got an unexpected keyword argument 'timezone'"),
    ],
    ids=str,
)
def test_a_needed_door_says_what_is_missing(running: Any, missing: Exception) -> None:
    running("4.4.0")

    @versions.needed
    def text_frame() -> None:
        raise missing

    with pytest.raises(SetupError, match=r"'text_frame'\) that Spark 4\.4\.0 lacks: .*") as raised:
        text_frame()
    assert str(missing) in str(raised.value)


@pytest.mark.parametrize("other", [TypeError("len() of None"), Py4JError("Answer from Java side is empty")])
def test_other_errors_stay(other: Exception) -> None:
    @versions.needed
    def access() -> None:
        raise other

    with pytest.raises(type(other), match=str(other).replace("(", r"\(").replace(")", r"\)")):
        access()
