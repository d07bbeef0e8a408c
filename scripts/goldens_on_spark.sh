#!/bin/sh
# Runs the recorded answers on another version of Spark, in an environment of its own: goldens_on_spark.sh 4.1
set -eu

cd "$(dirname "$0")/.."
version=$1
environment=.venv-spark-$version
sh scripts/setup.sh
if ! [ -x "$environment/bin/python" ]; then
    .venv/bin/python -m venv "$environment"
fi
grep -v '^pyspark==' constraints.txt > "$environment/constraints.txt"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check -c "$environment/constraints.txt" \
    -e '.[dev]' "pyspark==$version.*"
# PySpark 4.1 leaves it to the garbage collector to close the sockets of its results.
exec "$environment/bin/python" -m pytest -n "${WORKERS:-2}" --dist worksteal --tier default \
    -W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning tests/goldens
