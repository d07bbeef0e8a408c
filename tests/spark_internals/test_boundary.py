"""One package alone knows Spark's private parts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tidemill

ROOT = Path(tidemill.__file__).parent
INSIDE = ROOT / "spark_internals"
HANDLES = re.compile(
    r"_(?:jvm|jdf|jsc|jsparkSession|jspark_session|jconf|jc|jseq|jmap|jcols|jrdd|jreader|jwrite|jwriter"
    r"|jbroadcast|java_obj|java_import|gateway_client|active_spark_context|instantiatedSession"
    r"|instantiatedContext|ssql_ctx|sc|find_spark_home)"
)
"""Private attributes of PySpark's objects."""
SPARKS_OWN = frozenset({"SparkContext", "SparkSession", "DataFrame", "context", "spark", "sparkContext"})
"""Whatever has one of these names has no private attribute that others may touch."""
MODULES = re.compile(
    r"pyspark(?:\.errors|\.sql(?:\.(?:functions|types|window|readwriter|streaming(?:\.\w+)?))?)?"
)
"""PySpark's public modules."""
NAMES = frozenset(
    {
        "Accumulator",
        "AccumulatorParam",
        "SparkConf",
        "SparkContext",
        "SparkFiles",
        "StorageLevel",
        "TaskContext",
    }
)
"""What the module ``pyspark`` itself is asked for; its other names are modules of its own."""
MENTIONS = re.compile(r"[Ss]park|py4j|_j|_gateway")
"""Files without any of these are not parsed."""
CLASSES = re.compile(r"(?:org\.apache\.spark|org\.codehaus|scala)\.\w+(?:\.[\w$]+)*")
"""Names of classes in Spark's JVM."""


def private_parts(code: str) -> list[str]:
    """What ``code`` has of them, with the line."""
    tree = ast.parse(code)
    return sorted(f"{line}: {part}" for node in ast.walk(tree) for line, part in _of(node))


def _of(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.Import(names=names, lineno=line):
            yield from ((line, alias.name) for alias in names if not _is_public(alias.name))
        case ast.ImportFrom(module=str(module), names=names, lineno=line):
            if not _is_public(module):
                yield line, module
            elif module.partition(".")[0] == "pyspark":
                private = {a.name for a in names if a.name.startswith("_")}
                private |= {a.name for a in names} - NAMES if module == "pyspark" else set()
                yield from ((line, f"{module}.{name}") for name in private)
        case ast.Attribute(attr=name, value=value, lineno=line):
            spark = name.startswith("_") and not name.startswith("__") and _last_name(value) in SPARKS_OWN
            if HANDLES.fullmatch(name) or spark:
                yield line, name
        case ast.Constant(value=str(text), lineno=line):
            if HANDLES.fullmatch(text) or CLASSES.fullmatch(text):
                yield line, text


def _is_public(module: str) -> bool:
    top = module.partition(".")[0]
    return top != "py4j" and (top != "pyspark" or MODULES.fullmatch(module) is not None)


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def test_no_file_outside_has_private_parts() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{part}"
        for path in sorted(ROOT.rglob("*.py"))
        if INSIDE not in path.parents and MENTIONS.search(path.read_text())
        for part in private_parts(path.read_text())
    }
    assert not found, "put the access into tidemill/spark_internals"


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("from py4j.protocol import Py4JError", "py4j.protocol"),
        ("import py4j.java_gateway", "py4j.java_gateway"),
        ("from pyspark.sql.classic.column import Column", "pyspark.sql.classic.column"),
        ("from pyspark._globals import _NoValue", "pyspark._globals"),
        ("import pyspark.serializers as s", "pyspark.serializers"),
        ("from pyspark import cloudpickle", "pyspark.cloudpickle"),
        ("from pyspark.sql import _private", "pyspark.sql._private"),
        ("plan = frame._jdf.queryExecution()", "_jdf"),
        ("gateway = SparkContext._gateway", "_gateway"),
        ("self.spark._something_new", "_something_new"),
        ("getattr(frame, '_jdf')", "_jdf"),
        ("name = 'org.apache.spark.sql.Encoders'", "org.apache.spark.sql.Encoders"),
        ("name = 'scala.Option'", "scala.Option"),
    ],
)
def test_a_private_part_is_found(code: str, part: str) -> None:
    assert private_parts(f"\n{code}") == [f"2: {part}"]


@pytest.mark.parametrize(
    "code",
    [
        "from pyspark.sql import DataFrame, functions as F",
        "from pyspark import SparkContext, TaskContext",
        "from pyspark.errors import PySparkException",
        "self._spark.sql(text)",
        "context.addJobTag(tag)",
        "made = {'spark.sql.ansi.enabled': 'false'}",
    ],
)
def test_public_parts_are_no_private_ones(code: str) -> None:
    assert private_parts(code) == []
