#!/bin/sh
# Installs Debian's PostgreSQL server for the tests of the jdbc connector, where it is missing and this is
# root on Debian or Ubuntu. Quiet, and never a failure: without a server those tests skip and say so.
set -u

say() { printf '%s\n' "$*" >&2; }

if [ -n "$(command -v initdb)" ] || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    say "PostgreSQL is not installed: tests that need it will skip (Debian: apt-get install postgresql)"
    exit 0
fi
say "installing PostgreSQL for the tests"
# The tests start a server of their own: no default cluster is made or started.
mkdir -p /etc/postgresql-common/createcluster.d
echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.d/tidemill.conf
log=$(mktemp)
if (apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql) \
    >"$log" 2>&1 </dev/null; then
    say "PostgreSQL is installed"
else
    tail -n 5 "$log" >&2
    say "PostgreSQL could not be installed: tests that need it will skip"
fi
rm -f "$log"
exit 0
