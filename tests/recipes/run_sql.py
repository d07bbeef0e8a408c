"""Runs statements, one JSON text per line of input, and writes one JSON line of result for each: sorted final
rows, or the error."""

from __future__ import annotations

import json
import sys

from tidemill import TableEnvironment
from tidemill.errors import TidemillError


def main() -> None:
    environment = TableEnvironment.create()
    for line in sys.stdin:
        statement = json.loads(line)
        try:
            if statement.startswith("SELECT"):
                frame = environment.sql_query(statement).to_pandas().astype(str)
                result: object = sorted(frame.to_numpy().tolist())
            else:
                environment.execute_sql(statement).wait()
                result = "OK"
        except TidemillError as error:
            result = str(error)
        print("RESULT", json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
