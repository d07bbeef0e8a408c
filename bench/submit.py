"""Runs the statements that standard input holds as a JSON list; prints the seconds of each as JSON."""

from __future__ import annotations

import json
import sys
import time

from tidemill.session.environment import TableEnvironment


def main() -> None:
    environment = TableEnvironment.create()
    seconds = []
    for statement in json.load(sys.stdin):
        begun = time.perf_counter()
        environment.execute_sql(statement).wait()
        seconds.append(round(time.perf_counter() - begun, 3))
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
