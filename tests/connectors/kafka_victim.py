"""A Kafka job in a process of its own, to be killed: ``python -m tests.connectors.kafka_victim FOLDER STEP
TIME``.

The files ``numbers.sql``, ``totals.sql`` and ``insert.sql`` of FOLDER are its statements. At the TIME-th
time that STEP of a commit is reached the process kills itself; with the step ``sending`` that is in the
middle of a transaction, with ``workers`` it kills its Python workers each time an epoch was planned.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import patch

from tests.runtime.running import Session
from tests.runtime.victim import PYTHON, kill_python, kill_self
from tidemill.connectors.kafka import transactions
from tidemill.connectors.kafka.sending import Record, Sending


def main() -> None:
    folder, step, time = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    options = {
        "tidemill.epoch.max-rows": "20",
        "execution.checkpointing.dir": str(folder / "checkpoint"),
        "parallelism.default": "2",
    }
    if step == "sending":
        die_while_sending(time)
    fault = kill_python(PYTHON[step]) if step in PYTHON else kill_self(step, time)
    statements = ((folder / f"{name}.sql").read_text() for name in ("numbers", "totals", "insert"))
    Session(options, fault).execute(*statements)


def die_while_sending(time: int) -> None:
    """With the messages of the TIME-th transaction in the topic, which is still open."""
    seen = Counter[str]()

    class Dying(Sending):
        def all(self, records: Iterable[Record]) -> None:
            Sending.all(self, records)
            seen["sent"] += 1
            if seen["sent"] == time:
                self.client.flush(30)
                os.kill(os.getpid(), signal.SIGKILL)

    patch.object(transactions, "Sending", Dying).start()


if __name__ == "__main__":
    main()
