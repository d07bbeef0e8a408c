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

from pyspark import SparkContext
from pyspark.sql import SparkSession

from tidemill.spark_internals.java import SQL, java_class, java_session, jvm, scala_object
from tidemill.spark_internals.versions import FILE_ROOTS, is_on

_DATASOURCES = f"{SQL}.execution.datasources"
_NUMBERS = count()


def file_index(spark: SparkSession, paths: Sequence[str], partitions: Any) -> Any:
    """An InMemoryFileIndex of the files at ``paths``, absolute ones of this machine, of which those that are
    gone are left out. ``partitions``: a ``partition_spec`` of the directories they are in."""
    context = spark.sparkContext
    no_cache = scala_object(context, f"{_DATASOURCES}.NoopCache")
    listed = _index(spark, _hadoop_paths(context, [f"file:{path}" for path in paths]), partitions, no_cache)
    if len(paths) == 1 or not is_on(FILE_ROOTS):
        return listed
    cache = java_class(context, f"{_DATASOURCES}.FileStatusCache").getOrCreate(java_session(spark))
    roots = _hadoop_paths(context, [f"file:{commonpath(paths)}/$files{next(_NUMBERS)}"])
    entries = listed.allFiles()
    cache.putLeafFiles(roots.head(), entries.toArray(_class_tag(context, "org.apache.hadoop.fs.FileStatus")))
    index = _index(spark, roots, partitions, cache)
    cache.invalidateAll()
    # A user may have switched the cache off.
    return index if index.allFiles().size() == entries.size() else listed


def size_of(index: Any) -> tuple[int, int]:
    """How many files ``index`` has, and how many bytes these."""
    return int(index.allFiles().size()), int(index.sizeInBytes())


def _index(spark: SparkSession, roots: Any, partitions: Any, cache: Any) -> Any:
    """``roots`` are files, or known to ``cache``."""
    context = spark.sparkContext
    option = java_class(context, "scala.Option")
    flat = partitions.partitionColumns().isEmpty()
    options = jvm(context).PythonUtils.toScalaMap({"recursiveFileLookup": "true"} if flat else {})
    made = java_class(context, f"{_DATASOURCES}.InMemoryFileIndex")
    none = option.empty()
    return made(java_session(spark), roots, options, none, cache, option.apply(partitions), none)


def _class_tag(context: SparkContext, name: str) -> Any:
    tags = java_class(context, "scala.reflect.ClassTag")
    return tags.apply(java_class(context, "java.lang.Class").forName(name))


def _hadoop_paths(context: SparkContext, paths: Sequence[str]) -> Any:
    """A Scala Seq of Hadoop's Paths, in as many calls for a thousand as for one."""
    names = java_class(context, "org.apache.hadoop.util.StringUtils")
    texts = names.getStrings("\0".join(paths), "\0")
    sequence = java_class(context, "scala.collection.immutable.ArraySeq")
    return sequence.unsafeWrapArray(names.stringToPath(texts))
