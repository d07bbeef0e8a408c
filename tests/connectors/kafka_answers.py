"""Scripts for Flink's Kafka connector: what is in their topics before they run, and what Flink answers.

A script's first lines declare its topics (``-- topic NAME PARTITIONS KIND``), the messages that are in them
when it starts (``-- message TOPIC JSON``) and offsets of consumer groups (``-- group NAME TOPIC JSON``). The
names of topics and groups begin with ``${RUN}-``: each run has its own. Into a topic of the kind ``upsert``
Flink sends every change of a key, Tidemill the last one of an epoch; likewise into a topic of ``changes``.
``${DESCRIPTORS}`` is the option with Protobuf's descriptors, which Flink lacks: it reads Java classes.

    python -m tests.connectors.kafka_answers [NAME ...]

asks Flink again (``$FLINK_ORACLE``, or ``../shared/oracle/oracle``; the classes in ``$ORACLE_FLINK`` have to
include ``flink-sql-connector-kafka``, ``flink-sql-avro``, ``flink-sql-protobuf`` and the Java classes of
``protobuf.descriptors``, made by protoc with ``java_multiple_files``, and with Flink's shaded package instead
of ``com.google.protobuf``), about all scripts or those that are named. It writes ``recorded/kafka.json``, and
``recorded/kafka_read_by_flink.json``: the topics that Tidemill has written, and what Flink has read in them.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Message, Producer

from tests.connectors.kafka import Broker, broker
from tests.connectors.protobuf import descriptors
from tidemill.client import json_output
from tidemill.session.environment import TableEnvironment
from tidemill.sql.splitter import split

SCRIPTS = Path(__file__).parent / "kafka_scripts"
RECORDED = Path(__file__).parent / "recorded" / "kafka.json"
READ_BY_FLINK = RECORDED.with_name("kafka_read_by_flink.json")
NAMES = tuple(sorted(path.stem for path in SCRIPTS.glob("*.sql")))
SMALL_EPOCHS = {"tidemill.epoch.max-rows": "2"}
_ROOT = Path(__file__).resolve().parents[2]
_OLD = 1_700_000_000_000
"""A script's own timestamps are before it, those of a clock after it."""
_WRITES = ("INSERT", "EXECUTE")
Contents = dict[str, list[list[Any]]]
"""By topic its messages: partition, key, value, the timestamp that a script has set, headers."""
Answers = list[dict[str, Any]]


def script(name: str, *, reads: bool = False) -> str:
    """The text; with ``reads`` without the statements that write."""
    text = (SCRIPTS / f"{name}.sql").read_text()
    if not reads:
        return text
    kept = (piece.text for piece in split(text) if not piece.text.startswith(_WRITES))
    return ";\n".join(kept) + ";\n"


def writes(name: str) -> bool:
    return any(piece.text.startswith(_WRITES) for piece in split(script(name)))


def topics(name: str) -> dict[str, int]:
    """Their partitions."""
    return {topic: int((rest.split() or ["1"])[0]) for topic, rest in _declared(name, "topic")}


def prepare(broker: Broker, name: str, run: str, contents: Contents | None = None) -> None:
    """Makes the topics of a run, with the script's messages or with ``contents`` in them."""
    for topic, partitions in topics(name).items():
        broker.topic(partitions, f"{run}-{topic}")
    if contents is None:
        contents = {topic: [] for topic in topics(name)}
        for topic, message in _declared(name, "message"):
            m = json.loads(message)
            contents[topic].append([m.get(k) for k in ("partition", "key", "value", "timestamp", "headers")])
    producer = Producer({"bootstrap.servers": broker.servers, "log_level": 0})
    for topic, messages in contents.items():
        for partition, key, value, timestamp, headers in messages:
            kept = [(name, _bytes(header)) for name, header in headers or ()]
            more = {} if timestamp is None else {"timestamp": timestamp}
            producer.produce(
                f"{run}-{topic}", _bytes(value), _bytes(key), partition or 0, headers=kept, **more
            )
    assert producer.flush(30) == 0
    for group, rest in _declared(name, "group"):
        topic, offsets = rest.split(" ", 1)
        told = {int(partition): offset for partition, offset in json.loads(offsets).items()}
        broker.commit(f"{run}-{group}", f"{run}-{topic}", told)


def contents(broker: Broker, name: str, run: str) -> Contents:
    return {topic: [_plain(m) for m in broker.messages(f"{run}-{topic}")] for topic in topics(name)}


def compare(name: str, found: Contents, expected: Contents) -> None:
    """AssertionError if topics do not have what Flink has sent."""
    for topic, rest in _declared(name, "topic"):
        ours, flinks = found[topic], expected[topic]
        if rest.endswith("changes"):
            # An epoch shows its net change: some of Flink's messages, that lead to the same rows.
            more = Counter(map(json.dumps, ours)) - Counter(map(json.dumps, flinks))
            assert not more, f"{topic} has more: {more}"
            assert _rows_left(ours) == _rows_left(flinks), topic
        elif rest.endswith("upsert"):
            assert _last_by_key(ours) == _last_by_key(flinks), topic
        else:
            assert ours == flinks, topic


def final(name: str, given: Answers) -> Answers:
    """The answers to queries behind all that is written."""
    texts = [piece.text for piece in split(script(name))]
    last = max((i for i, text in enumerate(texts) if text.startswith(_WRITES)), default=-1)
    count = sum(text.startswith("SELECT") for text in texts[last + 1 :])
    return given[len(given) - count :]


def answers(document: Mapping[str, Any]) -> Answers:
    """Of the queries."""
    asked = [s for s in document["statements"] if s.get("kind") == "query"]
    failed = [s for s in document["statements"] if "error" in s or "truncated" in s]
    assert not failed, failed
    return [
        {"columns": [f"{c['name']} {c['type']}" for c in s["columns"]], **_counted(s["rows"])} for s in asked
    ]


def tidemill(
    broker: Broker, name: str, run: str, options: Mapping[str, str], *, reads: bool = False
) -> Answers:
    def session() -> TableEnvironment:
        environment = TableEnvironment.create(dict(options))
        environment.context.rendered = True
        return environment

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "script.sql")
        file.write_text(script(name, reads=reads))
        written = io.StringIO()
        Path(folder, "all.binpb").write_bytes(descriptors("proto3").SerializeToString())
        option = f", 'protobuf.descriptor-file' = '{folder}/all.binpb'"
        variables = {"SERVERS": broker.servers, "RUN": run, "DESCRIPTORS": option}
        json_output.run_script(str(file), variables, session, written)
    return answers(json.loads(written.getvalue()))


def _declared(name: str, what: str) -> list[tuple[str, str]]:
    found = re.findall(rf"^-- {what} (\S+) ?(.*)$", script(name), re.MULTILINE)
    return [(first, rest) for first, rest in found]


def _plain(message: Message) -> list[Any]:
    timestamp = message.timestamp()[1]
    headers = sorted([name, _shown(value)] for name, value in message.headers() or ())
    return [
        message.partition(),
        _shown(message.key()),
        _shown(message.value()),
        timestamp if timestamp < _OLD else None,
        headers,
    ]


def _rows_left(messages: list[list[Any]]) -> Counter[str]:
    """What the messages of a changelog in JSON add up to. AssertionError if a message takes a row away that
    is not there."""
    rows: Counter[str] = Counter()
    for _, _, value, *_ in messages:
        told = json.loads(value)
        gone = {told.get("op"), told.get("op_type"), told.get("type")} & {"d", "D", "delete", "DELETE"}
        row = json.dumps(told.get("data") or told["before" if gone else "after"])
        rows[row] += -1 if gone else 1
        assert rows[row] >= 0, value
    return +rows


def _last_by_key(messages: list[list[Any]]) -> list[list[Any]]:
    return sorted({message[1]: message for message in messages}.values(), key=json.dumps)


def _shown(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"hex:{data.hex()}"


def _bytes(text: str | None) -> bytes | None:
    if text is None:
        return None
    return bytes.fromhex(text[4:]) if text.startswith("hex:") else text.encode()


def _counted(changes: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """The rows that are left; all changes if some take back other rows than were given: metadata are of a
    message, not of a row."""
    count: Counter[str] = Counter()
    for kind, *values in changes:
        count[json.dumps(values)] += 1 if kind in ("+I", "+U") else -1
    if min(count.values(), default=0) < 0:
        return {"changes": sorted(changes, key=json.dumps)}
    return {"rows": [json.loads(row) for row in sorted(count.elements())]}


def _flink(broker: Broker, runs: Mapping[str, str], *, reads: bool = False) -> dict[str, Answers]:
    """Flink's answers by script; ``runs``: the run of each; ``reads`` as of ``script``."""
    oracle = os.environ.get("FLINK_ORACLE", str(_ROOT / ".." / "shared" / "oracle" / "oracle"))
    with tempfile.TemporaryDirectory() as folder:
        for name, run in runs.items():
            text = script(name, reads=reads)
            for variable, value in {"SERVERS": broker.servers, "RUN": run, "DESCRIPTORS": ""}.items():
                text = text.replace(f"${{{variable}}}", value)
            Path(folder, f"{name}.sql").write_text(text)
        done = subprocess.run([oracle, "run", folder], stdout=subprocess.PIPE, text=True, check=False)
    documents = map(json.loads, done.stdout.splitlines())
    return {Path(d["script"]).stem: answers(d) for d in documents}


def record(broker: Broker, names: Sequence[str]) -> None:
    runs = {name: f"flink_{name}" for name in names}
    for name, run in runs.items():
        prepare(broker, name, run)
    found = _flink(broker, runs)
    _keep(
        RECORDED,
        {name: {"topics": contents(broker, name, run), "answers": found[name]} for name, run in runs.items()},
    )


def record_own(broker: Broker, names: Sequence[str]) -> None:
    """Flink reads what Tidemill has written."""
    runs = {name: f"own_{name}" for name in names if writes(name)}
    for name, run in runs.items():
        prepare(broker, name, run)
        tidemill(broker, name, run, SMALL_EPOCHS)
    written = {name: contents(broker, name, run) for name, run in runs.items()}
    found = _flink(broker, runs, reads=True)
    _keep(
        READ_BY_FLINK,
        {name: {"topics": written[name], "answers": final(name, found[name])} for name in runs},
    )


def _keep(file: Path, found: Mapping[str, Any]) -> None:
    """Beside the other scripts'."""
    before = json.loads(file.read_text()) if file.exists() else {}
    document = {name: answer for name, answer in {**before, **found}.items() if name in NAMES}
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    asked = sys.argv[1:] or NAMES
    with tempfile.TemporaryDirectory() as scratch, broker(Path(scratch)) as running:
        record(running, asked)
        record_own(running, asked)
