#!/bin/sh
# Builds the wheel, installs it into a clean virtual environment in a temporary folder, and runs the README's
# script there: nothing of the checkout is on its path. Prints what it ran; fails where the answer is another.
set -eu

cd "$(dirname "$0")/.."
checkout=$(pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$checkout/.venv/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps -w "$folder" "$checkout"
"$checkout/.venv/bin/python" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    -c "$checkout/constraints.txt" "$folder"/tidemill-*.whl
cp "$checkout/README.md" "$checkout/scripts/smoke_readme.py" "$folder"
cd "$folder"
"$folder/venv/bin/python" -I smoke_readme.py README.md
