"""A job that follows a table of PostgreSQL in a process of its own, to be killed:
``python -m tests.connectors.postgres_cdc_victim PORT FOLDER STEP TIME``.

At the TIME-th time that STEP of a commit is reached the process kills itself; with ``workers`` it kills its
Python workers each time an epoch was planned, and itself at the TIME-th epoch. One that never gets there
ends with the stacks of its threads.
"""

from __future__ import annotations

import faulthandler
import sys
from pathlib import Path

from tests.connectors.cdc_job import options
from tests.connectors.postgres import Server
from tests.connectors.test_postgres_cdc_job import INSERTS, statements
from tests.runtime.running import Session
from tests.runtime.victim import PYTHON, kill_python, kill_self

_PATIENCE = 180
"""Seconds."""


def main() -> None:
    faulthandler.dump_traceback_later(_PATIENCE, exit=True)
    port, folder, step, time = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    server = Server(programs=folder, data=folder, port=port)
    dies = kill_self("committed" if step in PYTHON else step, time)
    workers = kill_python(PYTHON[step]) if step in PYTHON else None

    def fault(reached: str) -> None:
        if workers is not None:
            workers(reached)
        dies(reached)

    Session(options(folder), fault).execute(*statements(server), INSERTS)


if __name__ == "__main__":
    main()
