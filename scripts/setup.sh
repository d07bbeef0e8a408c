#!/bin/sh
# Sets up everything the Makefile needs: Java 17 or newer, and .venv with the locked dependencies.
# With a cargo the compiled core is built, too. Runs again only when one of the files changed that say what is
# installed (the stamp file says so).
set -eu

cd "$(dirname "$0")/.."
stamp=.venv/.tidemill-setup
wanted=$(cat pyproject.toml constraints.txt scripts/setup.sh setup.py native/src/*.rs | cksum)

say() { printf '%s\n' "$*" >&2; }
fail() { say "error: $*"; exit 1; }

java_major() {
    "$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\)[."].*/\1/p;s/.*version "\([0-9]*\)".*/\1/p' | head -n 1
}

find_java() {
    for candidate in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)"; do
        if [ -n "$candidate" ] && [ -x "$candidate" ]; then
            major=$(java_major "$candidate")
            if [ "${major:-0}" -ge 17 ]; then
                return 0
            fi
            say "found $candidate, but it is Java ${major:-?}; Spark needs 17 or newer"
        fi
    done
    return 1
}

install_java() {
    command='apt-get update && apt-get install -y openjdk-17-jre-headless'
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing Java 17: $command"
        apt-get update >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y openjdk-17-jre-headless >&2 && return 0
        fail "Java 17 could not be installed; see above"
    fi
    if command -v apt-get >/dev/null 2>&1; then
        fail "Java 17 or newer is missing. Install it, then run this again: sudo sh -c '$command'"
    fi
    fail "Java 17 or newer is missing. Install a JDK or JRE 17 (e.g. https://adoptium.net), put java on PATH or set JAVA_HOME, then run this again"
}

find_python() {
    for name in "${PYTHON:-}" python3.11 python3.12 python3.13 python3; do
        if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1; then
            if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
                command -v "$name"
                return 0
            fi
        fi
    done
    return 1
}

find_java || { install_java; find_java || fail "Java was installed, but is not on PATH"; }

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi

python=$(find_python) || fail "Python 3.11 or newer is missing. Install it (Debian: apt-get install -y python3 python3-venv), then run this again"
if ! [ -x .venv/bin/python ]; then
    say "making .venv with $python"
    "$python" -m venv .venv || fail "could not make .venv; on Debian: apt-get install -y python3-venv"
fi
say "installing dependencies into .venv"
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' >&2
say "starting Spark once: later starts take its classes from an archive"
printf 'SELECT a, COUNT(*) FROM (VALUES (1), (2)) AS t (a) GROUP BY a;\n' > .venv/first.sql
.venv/bin/python -m tidemill run .venv/first.sql >/dev/null 2>&1 || true
printf '%s\n' "$wanted" > "$stamp"
say "ready"
