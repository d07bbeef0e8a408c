#!/bin/sh
# Installs Debian's Chromium for the tests of the console, where no browser is and this is root on Debian. Quiet,
# and never a failure: without a browser those tests skip and say so.
set -u

say() { printf '%s\n' "$*" >&2; }

for name in chromium chromium-headless-shell google-chrome; do
    if [ -n "$(command -v $name)" ]; then
        exit 0
    fi
done
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    say "Chromium is not installed: tests of the console will skip (Debian: apt-get install chromium)"
    exit 0
fi
say "installing Chromium for the tests"
log=$(mktemp)
if (apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    chromium-headless-shell fonts-dejavu-core) >"$log" 2>&1 </dev/null; then
    say "Chromium is installed"
else
    tail -n 5 "$log" >&2
    say "Chromium could not be installed: tests of the console will skip"
fi
rm -f "$log"
exit 0
