"""The parts of Spark's private interfaces that the Spark of this process has.

A feature names the versions of Spark that it was written for; in any other one it is off, and results stay
the same. ``check_version`` says so once, when an application starts. A needed function has no substitute: it
raises a SetupError if its part of Spark is missing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext

from tidemill.errors import SetupError

P = ParamSpec("P")
R = TypeVar("R")
_WRITTEN_FOR = ("4.3",)
_LOGGER = logging.getLogger("tidemill")
_MISSING = re.compile(
    r"(?:Method|Constructor) [^\n]* does not exist"  # Java has another one of that name, or none
    r"|does not exist in the JVM"
    r"|'JavaPackage' object is not callable"  # py4j takes a class that is not there for a package
    r"|has no attribute '_|unexpected keyword argument"
)
_VERSIONS: WeakKeyDictionary[SparkContext, str] = WeakKeyDictionary()
_CHECKED: WeakSet[SparkContext] = WeakSet()


@dataclass(frozen=True, slots=True)
class Feature:
    """Something that works without, too. ``without``: how things are if it is off, as a clause;
    ``versions``: of Spark, major and minor."""

    name: str
    without: str
    versions: tuple[str, ...] = _WRITTEN_FOR


CLASS_LOOKUPS = Feature("remembered classes", "each call asks the JVM for its class")
FILE_RELATIONS = Feature("Spark's readers of columnar files", "Tidemill's decoders read them")
FILE_ROOTS = Feature("file indexes with one root", "plans over many files take longer")
KNOWN_PLANS = Feature("plans of repeated queries", "Spark analyses each query")
LENT_SESSIONS = Feature("sessions that are used again", "each query gets a new session")
LOCAL_ROWS = Feature("constant rows without a job", "Spark runs a job for them")
PIPELINED_EXCHANGES = Feature("pipelined exchanges", "exchanges are blocking")
PLAN_RECORDS = Feature("rows by operator in the job history", "the history lacks them")
SETTINGS_AT_ONCE = Feature("settings in one call", "each setting is a call into the JVM")
SLOW_HOSTS = Feature("blocking of slow hosts", "slow hosts still get tasks")
STAGE_RECORDS = Feature("stages in the job history", "the history lacks them")
STOPPABLE_ROWS = Feature("tasks that end within a batch", "a cancelled task ends with its batch")
UNKNOWN_SIZES = Feature("checkpoints without guessed sizes", "plans with many joins take longer")

FEATURES = (
    CLASS_LOOKUPS,
    FILE_RELATIONS,
    FILE_ROOTS,
    KNOWN_PLANS,
    LENT_SESSIONS,
    LOCAL_ROWS,
    PIPELINED_EXCHANGES,
    PLAN_RECORDS,
    SETTINGS_AT_ONCE,
    SLOW_HOSTS,
    STAGE_RECORDS,
    STOPPABLE_ROWS,
    UNKNOWN_SIZES,
)


def spark_version() -> str:
    """Of the application that runs in this process, as '4.3.0'; before one does, PySpark's own."""
    context = SparkContext._active_spark_context
    if context is None:
        return pyspark.__version__
    known = _VERSIONS.get(context)
    if known is None:
        known = _VERSIONS[context] = context.version
    return known


def is_on(feature: Feature) -> bool:
    """Whether the Spark of this process is one that ``feature`` was written for."""
    return ".".join(spark_version().split(".")[:2]) in feature.versions


def check_version(context: SparkContext) -> None:
    """One warning for the application that names all features that are off; none if all are on."""
    if context in _CHECKED:
        return
    _CHECKED.add(context)
    off = [feature for feature in FEATURES if not is_on(feature)]
    if off:
        listed = "; ".join(f"{feature.name} ({feature.without})" for feature in off)
        written = ", ".join(sorted({version for feature in off for version in feature.versions}))
        _LOGGER.warning(
            "Spark %s: these features were written for Spark %s and are off, which changes no result: %s",
            spark_version(),
            written,
            listed,
        )


def needed(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, which raises a SetupError if this Spark lacks the parts that it uses. Spark's own errors
    stay."""

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Py4JJavaError:
            raise
        except (AttributeError, TypeError, Py4JError) as e:
            if not _MISSING.search(str(e)):
                raise
            raise SetupError(
                f"Tidemill needs a part of Spark ('{function.__name__}') that Spark {spark_version()}"
                f" lacks: {e}",
                hint=f"Install a Spark that has it: pip install 'pyspark=={_WRITTEN_FOR[-1]}.*'.",
            ) from e

    return checked
