"""The kill proof of Kafka: ``python -m tests.connectors.kafka_proof --kills 20 --seed 7 [--minutes 60]``.

Runs ``proof`` on a broker and a database of its own (PostgreSQL if there is one, else SQLite). Says on
standard error how far it is, and as JSON what it did; exit status 1 if anything differed, or a job ended by
itself.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.connectors.kafka import have_classes
from tests.connectors.kafka_proof.proof import prove


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=120, help="after which a run counts as stuck")
    parser.add_argument("--database", default="")
    given = parser.parse_args()
    if not have_classes():
        sys.exit("Kafka's classes cannot be had from Maven (mvn, Maven Central).")
    with tempfile.TemporaryDirectory() as root:
        proof = prove(
            Path(root), kills=given.kills, seed=given.seed, minutes=given.minutes, url=given.database
        )
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
