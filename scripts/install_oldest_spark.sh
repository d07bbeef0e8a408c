#!/bin/sh
# Puts the oldest supported PySpark into .oldest-spark; with PYTHONPATH=.oldest-spark it stands before the venv's own.
set -eu
cd "$(dirname "$0")/.."
oldest=4.1.0
[ -e ".oldest-spark/pyspark-$oldest.dist-info" ] && exit 0
rm -rf .oldest-spark
.venv/bin/python -m pip install --quiet --no-deps --target .oldest-spark "pyspark==$oldest"
