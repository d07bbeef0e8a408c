#!/bin/sh
# Installs Debian's MariaDB server for the tests of the mysql-cdc connector, where it is missing and this is
# root on Debian or Ubuntu. Quiet, and never a failure: without a server those tests skip and say so.
set -u

say() { printf '%s\n' "$*" >&2; }

if [ -n "$(command -v mariadbd)" ] || [ -x /usr/sbin/mariadbd ]; then
    exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    say "MariaDB is not installed: tests that need it will skip (Debian: apt-get install mariadb-server)"
    exit 0
fi
say "installing MariaDB for the tests"
log=$(mktemp)
if (apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends mariadb-server) \
    >"$log" 2>&1 </dev/null; then
    say "MariaDB is installed"
else
    tail -n 5 "$log" >&2
    say "MariaDB could not be installed: tests that need it will skip"
fi
rm -f "$log"
exit 0
