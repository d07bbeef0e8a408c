"""Staged messages of a Kafka sink stay until readers of the cluster see their epoch: here a cluster loses
transactions that it has acknowledged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from tests.connectors.kafka import Broker
from tests.connectors.sinks import sink
from tests.connectors.sources import table
from tidemill.connectors.kafka.sink import KafkaSink
from tidemill.connectors.kafka.transactions import Transactions
from tidemill.errors import CommitUnknownError, ConnectorError
from tidemill.types import logical as t

pytestmark = pytest.mark.thorough
SECOND = 2


class Target:
    """Exactly-once sinks of one job into ``topics``, which may be made anew like after a restart."""

    job, former, places = "job", tuple[str, ...](), tuple[str, ...]()

    def __init__(self, broker: Broker, folder: Path, topics: Sequence[str], guarantee: str) -> None:
        self.folder, self.topics = folder, topics
        options = {
            "sink.delivery-guarantee": guarantee,
            "sink.transactional-id-prefix": topics[0],
            "sink.staging-path": str(folder),
            "value.format": "raw",
        }
        self.declared = [
            table({"v": t.STRING}, broker.options({**options, "topic": topic})) for topic in topics
        ]
        self.restart()

    def restart(self) -> None:
        self.sinks: list[KafkaSink] = []
        for ordinal, declared in enumerate(self.declared):
            made = sink(declared, ordinal=ordinal, job=self.job, former=self.former, places=self.places)
            assert isinstance(made, KafkaSink)
            self.sinks.append(made)

    def start(self, epoch: int) -> None:
        """As a job starts whose next epoch this is."""
        self.restart()
        for made in self.sinks:
            made.discard(epoch)

    def stage(self, epoch: int, values: str) -> list[tuple[KafkaSink, list[str]]]:
        """A message for each letter, in each topic."""
        batch = pa.record_batch([pa.array([*values], pa.string())], names=["v"])
        return [(s, [b.column(0)[0].as_py() for b in s.stager(epoch)([batch])]) for s in self.sinks]

    def publish(self, epoch: int, values: str) -> None:
        staged = self.stage(epoch, values)
        self.sinks[0].publish_group(epoch, staged)

    def kept(self) -> set[str]:
        """Epochs whose files are there, with the number of the sink."""
        return {f"{p.parent.name}/{p.name}" for p in self.folder.glob("job/*/*") if p.is_dir()}


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Commits with these numbers, of all that come, are acknowledged and lost."""
    numbers: set[int] = set()
    came: list[int] = []

    class Losing:
        def __init__(self, settings: dict[str, object]) -> None:
            self.inner = Producer(settings)

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

        def commit_transaction(self, seconds: float) -> None:
            came.append(1)
            if len(came) in numbers:
                self.inner.flush(30)
                self.inner.abort_transaction(seconds)
            else:
                self.inner.commit_transaction(seconds)

    monkeypatch.setattr("tidemill.connectors.kafka.sending.Producer", Losing)
    return numbers


@pytest.fixture
def target(kafka: Broker, tmp_path: Path) -> Target:
    return Target(kafka, tmp_path, [kafka.topic(), kafka.topic()], "exactly-once")


def shown(broker: Broker, target: Target) -> list[str]:
    return ["".join(v or "" for _, v in broker.records(topic)) for topic in target.topics]


def test_files_of_an_epoch_stay_until_the_next_one_has_seen_its_number(kafka: Broker, target: Target) -> None:
    target.publish(1, "ab")
    assert target.kept() == {"0/1", "1/1"}
    target.publish(2, "c")
    assert target.kept() == {"0/2", "1/2"}
    target.publish(3, "")
    assert target.kept() == {"0/2", "1/2"}
    target.restart()
    target.publish(4, "d")
    assert target.kept() == {"0/4", "1/4"}
    for made in target.sinks:
        made.finish()
    assert not [*target.folder.iterdir()]
    assert shown(kafka, target) == ["abcd", "abcd"]


@pytest.mark.parametrize("restart", [False, True])
def test_an_epoch_that_the_cluster_has_lost_is_sent_before_the_next_one(
    kafka: Broker, target: Target, losing: set[int], restart: bool
) -> None:
    losing.add(SECOND)
    target.publish(1, "ab")
    target.publish(2, "cd")
    assert shown(kafka, target) == ["ab", "ab"]
    if restart:
        target.restart()
    target.publish(3, "ef")
    assert shown(kafka, target) == ["abcdef", "abcdef"]
    target.publish(4, "g")
    assert target.kept() == {"0/4", "1/4"}


def test_several_lost_epochs_are_sent_in_their_order(kafka: Broker, target: Target, losing: set[int]) -> None:
    losing.update({2, 4})
    target.publish(1, "a")
    target.publish(2, "b")
    target.publish(3, "c")  # commits 3 and 4: epoch 2 again, then this one
    target.publish(5, "d")
    assert shown(kafka, target) == ["abcd", "abcd"]


@pytest.mark.parametrize("restart", [False, True])
def test_a_job_ends_with_its_last_epoch_in_the_topic(
    kafka: Broker, target: Target, losing: set[int], restart: bool
) -> None:
    """The next start does not publish it again: the job has noted it as published."""
    losing.add(SECOND)
    target.publish(1, "ab")
    target.publish(2, "cd")
    if restart:
        target.restart()
    for made in target.sinks:
        made.finish()
    assert shown(kafka, target) == ["abcd", "abcd"]
    assert not [*target.folder.iterdir()]


def test_a_lost_first_epoch_is_not_taken_for_a_forgotten_number(
    kafka: Broker, target: Target, losing: set[int]
) -> None:
    """Both look alike. Whoever has looked into the topic removes the note, and loses nothing."""
    losing.add(1)
    target.publish(1, "ab")
    with pytest.raises(CommitUnknownError, match="does not remember") as raised:
        target.publish(2, "c")
    (note,) = target.folder.glob("job/0/recorded")
    assert str(note) in (raised.value.hint or "")
    note.unlink()
    target.restart()
    target.publish(2, "c")
    assert shown(kafka, target) == ["abc", "abc"]


def test_epochs_whose_number_is_forgotten_are_not_sent_twice(
    kafka: Broker, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says which file keeps an epoch from being sent again."""
    target.publish(1, "ab")
    target.publish(2, "cd")
    monkeypatch.setattr(Transactions, "recorded", lambda self: 0)
    with pytest.raises(CommitUnknownError, match=r"epoch 2, 3 is not known") as raised:
        target.publish(3, "ef")
    for note in ("2/sent", "recorded"):
        (found,) = target.folder.glob(f"job/0/{note}")
        assert str(found) in (raised.value.hint or "")
        found.unlink()
    target.restart()
    target.publish(3, "ef")
    assert shown(kafka, target) == ["abcdef", "abcdef"]


def test_a_start_sends_what_the_cluster_has_lost(kafka: Broker, target: Target, losing: set[int]) -> None:
    losing.add(SECOND)
    target.publish(1, "ab")
    target.publish(2, "cd")
    target.restart()
    for made in target.sinks:
        made.discard(3)
    assert shown(kafka, target) == ["abcd", "abcd"]


def test_what_another_prefix_has_sent_is_not_sent_again(kafka: Broker, target: Target) -> None:
    target.publish(1, "a")
    target.publish(2, "b")
    other = [
        {**d.options, "sink.transactional-id-prefix": f"new-{target.topics[0]}"} for d in target.declared
    ]
    target.declared = [replace(d, options=o) for d, o in zip(target.declared, other, strict=True)]
    (target.folder / "job/0/recorded").unlink()
    target.restart()
    target.publish(3, "c")
    assert shown(kafka, target) == ["abc", "abc"]


def test_nothing_is_kept_and_nobody_is_asked_without_transactions(kafka: Broker, tmp_path: Path) -> None:
    target = Target(kafka, tmp_path, [kafka.topic()], "at-least-once")
    target.publish(1, "ab")
    assert not target.kept()
    assert shown(kafka, target) == ["ab"]


def test_the_broker_is_asked_once_for_an_epoch(
    target: Target, losing: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    plain = Transactions.recorded

    def counted(self: Transactions) -> int:
        asked.append(1)
        return plain(self)

    monkeypatch.setattr(Transactions, "recorded", counted)
    for epoch in range(1, 6):
        target.publish(epoch, "a")
    assert len(asked) == 5


@pytest.fixture
def successor(kafka: Broker, target: Target) -> Target:
    """A job that takes up the state of the job of ``target``, whose last epoch is 2, from a savepoint."""
    made = Target(kafka, target.folder, target.topics, "exactly-once")
    made.job, made.former = "next", ("first", "job")
    return made


def test_a_successor_sends_what_the_cluster_has_lost(
    kafka: Broker, target: Target, successor: Target, losing: set[int]
) -> None:
    """Nobody else would send it again. A successor of the successor, and a restart, find that it is there."""
    losing.update({2, 5})
    target.publish(1, "ab")
    target.publish(2, "cd")
    assert shown(kafka, target) == ["ab", "ab"]
    successor.start(3)
    assert shown(kafka, target) == ["abcd", "abcd"]
    successor.publish(3, "ef")
    successor.publish(4, "g")  # commit 5: the third one sent epoch 2
    assert shown(kafka, target) == ["abcdef", "abcdef"]
    successor.job, successor.former = "last", ("first", "job", "next")
    for _ in range(2):
        successor.start(5)
        assert shown(kafka, target) == ["abcdefg", "abcdefg"]
    successor.publish(5, "h")
    assert shown(kafka, target) == ["abcdefgh", "abcdefgh"]


def test_a_successor_with_other_options_sends_them_as_well(
    kafka: Broker, target: Target, successor: Target, losing: set[int]
) -> None:
    """It writes one of the topics, at least once, or under another prefix."""
    losing.add(SECOND)
    target.publish(1, "ab")
    target.publish(2, "cd")
    kept = successor.declared[1]
    options = {**kept.options, "sink.delivery-guarantee": "at-least-once"}
    successor.declared = [replace(kept, options=options)]
    successor.start(3)
    assert shown(kafka, target) == ["abcd", "abcd"]
    losing.add(4)
    target.restart()
    target.publish(3, "ef")
    assert shown(kafka, target) == ["abcd", "abcd"]
    options = {**kept.options, "sink.transactional-id-prefix": f"new-{target.topics[0]}"}
    successor.declared = [replace(kept, options=options)]
    successor.start(4)
    assert shown(kafka, target) == ["abcdef", "abcdef"]


def test_a_successor_with_another_folder_finds_the_files(
    kafka: Broker, target: Target, successor: Target, losing: set[int]
) -> None:
    """A restart of the job itself with another folder does, too. A folder that is gone is an error."""
    losing.update({2, 4})
    target.publish(1, "ab")
    target.publish(2, "cd")
    assert shown(kafka, target) == ["ab", "ab"]
    for name, made in (("new", successor), ("own", target)):
        options = {"sink.staging-path": str(target.folder / name)}
        made.declared = [replace(d, options={**d.options, **options}) for d in made.declared]
    successor.places = (str(target.folder / "new"), str(target.folder))
    successor.start(3)
    assert shown(kafka, target) == ["abcd", "abcd"]
    target.places = (str(target.folder),)
    target.restart()
    target.publish(3, "e")  # the third commit sent epoch 2, and this one is lost
    options = {"sink.staging-path": str(target.folder / "other")}
    target.declared = [replace(d, options={**d.options, **options}) for d in target.declared]
    target.places = (str(target.folder / "own"), str(target.folder))
    target.start(4)
    assert shown(kafka, target) == ["abcde", "abcde"]
    target.places = (str(target.folder / "gone"),)
    with pytest.raises(ConnectorError, match=r"The folder .*/gone is not there"):
        target.start(4)


def test_a_successor_leaves_later_epochs_to_the_job_that_has_them(
    kafka: Broker, target: Target, successor: Target, losing: set[int]
) -> None:
    """That job went on after the savepoint."""
    losing.add(3)
    for epoch, values in ((1, "a"), (2, "b"), (3, "c")):
        target.publish(epoch, values)
    successor.start(3)
    assert shown(kafka, target) == ["ab", "ab"]
    target.publish(4, "d")
    assert shown(kafka, target) == ["abcd", "abcd"]


def test_a_successor_does_not_disturb_a_job_whose_epochs_are_there(
    kafka: Broker, target: Target, successor: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lets go of their files, as that job would. So it starts again when Kafka has forgotten numbers."""
    target.publish(1, "a")
    target.publish(2, "b")
    outbox = target.sinks[0].outbox
    assert isinstance(outbox, Transactions)
    client = outbox._client
    successor.start(3)
    assert not target.kept()
    with monkeypatch.context() as patch:
        patch.setattr(Transactions, "recorded", lambda self: 0)
        successor.start(3)
    target.publish(3, "c")
    assert outbox._client is client is not None
    assert shown(kafka, target) == ["abc", "abc"]


def test_a_successor_does_not_start_if_nobody_can_tell(
    kafka: Broker, target: Target, successor: Target, losing: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says which file decides."""
    losing.add(SECOND)
    target.publish(1, "a")
    target.publish(2, "b")
    message = rf"topic '{target.topics[0]}' has epoch 2 of job job, .* is not known"
    with monkeypatch.context() as patch:
        patch.setattr(Transactions, "recorded", lambda self: 0)
        with pytest.raises(CommitUnknownError, match=message) as raised:
            successor.start(3)
    found = [*target.folder.glob("job/0/2/sent"), *target.folder.glob("job/0/recorded")]
    assert len(found) == 2
    assert all(str(path) in (raised.value.hint or "") for path in found)
    found[0].unlink()
    successor.start(3)
    assert shown(kafka, target) == ["a", "a"]
