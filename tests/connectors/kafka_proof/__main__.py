"""The kill proof of Kafka: ``python -m tests.connectors.kafka_proof --kills 20 --seed 7 [--minutes 60]``.

Starts a broker and a database (PostgreSQL if there is one, else SQLite) and runs ``proof`` on them. Says on
standard error how far it is, and as JSON what it did; exit status 1 if anything differed, or a job ended by
itself.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.connectors.kafka import broker, have_classes
from tests.connectors.kafka_proof.proof import Proof
from tests.runtime.kills import database


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=120, help="after which a run counts as stuck")
    parser.add_argument("--database", default="")
    given = parser.parse_args()
    if not have_classes():
        sys.exit("Kafka's classes cannot be had from Maven (mvn, Maven Central).")
    with (
        tempfile.TemporaryDirectory() as root,
        broker(Path(root, "kafka")) as running,
        database(given.database, root) as url,
    ):
        until = time.monotonic() + 60 * given.minutes
        proof = Proof(Path(root), running, url, random.Random(given.seed), until)
        proof.run(given.kills, per_round=8)
    report = {
        "kills": proof.killed.total(),
        "by way": dict(proof.killed),
        "rounds": proof.rounds,
        "epochs": proof.epochs,
        "looks": dict(proof.looks),
        "refused": proof.refused,
        "differences": proof.differences,
    }
    print(json.dumps(report, indent=1))
    sys.exit(1 if proof.refused or proof.differences else 0)


if __name__ == "__main__":
    main()
