"""What Kafka has lost of the jobs whose state a job has taken up.

A cluster may lose a transaction whose commit it has acknowledged (see ``kept``). The job sends it again at
its next start. If it never starts again, but another job takes up its savepoint, that one does it: its state
already counts the epoch, and nobody else would send it.

1. Ask what the earlier job's consumer group has recorded. This disturbs no job that is still running.
2. The files of epochs up to that number go, as the earlier job itself would let them go.
3. Send what is missing under the earlier job's transactional id: whoever else sends under it is fenced, and
   asks again before he sends. Then from 1.

The files are where the sinks of the earlier job have kept them, which a job's record says. A folder that is
not there is an error: what it has would be lost without a word.

Later epochs than the savepoint's are no business of the job. Cost of a start: a listing for each earlier job,
and a question for each one that has left files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from tidemill.connectors.kafka import properties
from tidemill.connectors.kafka.kept import Kept, Shares, note_of, records_of, topics_of
from tidemill.connectors.kafka.transactions import Transactions
from tidemill.errors import CommitUnknownError, ConnectorError
from tidemill.files.storage import Storage

_TRIES = 2
"""The cluster shows an epoch that it acknowledges, unless it loses it again."""


def reached(place: str) -> Storage:
    """Where an earlier sink has kept rows. ConnectorError where that is not there."""
    storage = Storage(place)
    if storage.is_local and not storage.exists():
        raise ConnectorError(
            f"The folder {place} is not there. An earlier sink of this job, or of the job whose state it"
            " takes up, may have kept rows there that Kafka has lost since.",
            hint="Make the folder reachable under this path. If it is lost, compare the end of the topic with"
            " the state, and make an empty folder there to go on.",
        )
    return storage


def send_lost(given: properties.Properties, storage: Storage, jobs: Sequence[str], epoch: int) -> None:
    """Sends what the cluster lacks of ``jobs`` before ``epoch``. CommitUnknownError where nobody can tell
    what it has, ConnectorError where it cannot be asked or does not show what it acknowledges."""
    for job in jobs:
        for ordinal in sorted(storage.directories(job)):
            kept = Kept.of_last(storage, f"{job}/{ordinal}")
            if kept is not None:
                _send(given, kept, epoch)


def _send(given: properties.Properties, kept: Kept, epoch: int) -> None:
    epochs = _before(kept, epoch)
    if not epochs:
        return
    last = max(epochs)
    outbox = Transactions(
        given=given,
        name=kept.name,
        topic=next(s.topic for s in epochs[last] if s.directory == f"{kept.directory}/{last}"),
        storage=kept.storage,
        note=f"{kept.directory}/recorded",
    )
    try:
        for tries in range(_TRIES + 1):
            recorded = outbox.known(last)
            kept.seen(min(recorded, last))
            epochs = _before(kept, epoch)
            if not epochs:
                return
            if not recorded and kept.storage.stat(outbox.note) is not None:
                raise _forgotten(outbox, kept, list(epochs))
            if tries < _TRIES:
                topics = topics_of([share for shares in epochs.values() for share in shares])
                records = {number: partial(records_of, shares) for number, shares in epochs.items()}
                outbox.send(last, topics, records.pop(last), records)
        raise ConnectorError(
            f"The cluster of topic '{outbox.topic}' acknowledges epoch {last} of job"
            f" {kept.directory.partition('/')[0]}, whose state this job takes up, and does not show it."
        )
    finally:
        outbox.close()


def _before(kept: Kept, epoch: int) -> Mapping[int, Shares]:
    return {number: shares for number, shares in kept.epochs().items() if number < epoch}


def _forgotten(outbox: Transactions, kept: Kept, epochs: Sequence[int]) -> CommitUnknownError:
    job = kept.directory.partition("/")[0]
    notes = ", ".join(kept.storage.full_path(note_of(kept.directory, epoch)) for epoch in epochs)
    return CommitUnknownError(
        f"Kafka does not remember what consumer group '{outbox.name}' has recorded: whether topic"
        f" '{outbox.topic}' has epoch {', '.join(map(str, epochs))} of job {job}, whose state this job takes"
        " up, is not known.",
        hint="Kafka keeps such offsets for offsets.retention.minutes. Look into the topic. If the rows are in"
        f" it, remove {notes}; if not, remove {kept.storage.full_path(outbox.note)}. Then start again.",
    )
