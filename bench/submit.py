"""Runs a script from standard input, its last statement N times; prints the seconds of each as JSON."""

from __future__ import annotations

import json
import sys
import time

from tidemill.session.environment import TableEnvironment
from tidemill.sql.splitter import split


def main() -> None:
    statements = [s.text for s in split(sys.stdin.read())]
    environment = TableEnvironment.create()
    for statement in statements[:-1]:
        environment.execute_sql(statement)
    seconds = []
    for _ in range(int(sys.argv[1])):
        begun = time.perf_counter()
        environment.execute_sql(statements[-1]).wait()
        seconds.append(round(time.perf_counter() - begun, 3))
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
