"""Spark's index of files that we have listed ourselves.

Spark compares two indexes by their root paths, and looks up each root when it asks how large a table is. So
an index of files by name costs as much as there are files whenever a plan is made, compared or looked at.
Here it has one root, a name that no other index has, which Spark's cache of listings knows to have the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from os.path import commonpath
from typing import Any

from pyspark.sql import SparkSession

DATASOURCES = "org.apache.spark.sql.execution.datasources"
_NUMBERS = count()


def file_index(spark: SparkSession, paths: Sequence[str], partitions: Any) -> Any:
    """An InMemoryFileIndex of the files at ``paths``, absolute ones of this machine, of which those that are
    gone are left out. ``partitions``: a PartitionSpec of the directories they are in."""
    jvm: Any = spark._jvm
    no_cache = getattr(getattr(jvm, f"{DATASOURCES}.NoopCache$"), "MODULE$")
    listed = _index(spark, _hadoop_paths(jvm, [f"file:{path}" for path in paths]), partitions, no_cache)
    if len(paths) == 1:
        return listed
    cache = getattr(jvm, f"{DATASOURCES}.FileStatusCache").getOrCreate(spark._jsparkSession)
    roots = _hadoop_paths(jvm, [f"file:{commonpath(paths)}/$files{next(_NUMBERS)}"])
    found = listed.allFiles()
    cache.putLeafFiles(roots.head(), found.toArray(_class_tag(jvm, "org.apache.hadoop.fs.FileStatus")))
    index = _index(spark, roots, partitions, cache)
    cache.invalidateAll()
    # A user may have switched the cache off.
    return index if index.allFiles().size() == found.size() else listed


def _index(spark: SparkSession, roots: Any, partitions: Any, cache: Any) -> Any:
    """``roots`` are files, or known to ``cache``."""
    jvm: Any = spark._jvm
    option = getattr(jvm, "scala.Option")
    flat = partitions.partitionColumns().isEmpty()
    options = jvm.PythonUtils.toScalaMap({"recursiveFileLookup": "true"} if flat else {})
    made = getattr(jvm, f"{DATASOURCES}.InMemoryFileIndex")
    none = option.empty()
    return made(spark._jsparkSession, roots, options, none, cache, option.apply(partitions), none)


def _class_tag(jvm: Any, name: str) -> Any:
    return getattr(jvm, "scala.reflect.ClassTag").apply(getattr(jvm, "java.lang.Class").forName(name))


def _hadoop_paths(jvm: Any, paths: Sequence[str]) -> Any:
    """A Scala Seq of Hadoop's Paths, in as many calls for a thousand as for one."""
    names = getattr(jvm, "org.apache.hadoop.util.StringUtils")
    texts = names.getStrings("\0".join(paths), "\0")
    sequence = getattr(jvm, "scala.collection.immutable.ArraySeq")
    return sequence.unsafeWrapArray(names.stringToPath(texts))
