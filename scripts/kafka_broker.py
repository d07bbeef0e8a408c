"""Starts a Kafka broker on this machine, to try things: `python scripts/kafka_broker.py --port 9092`.

Wants Java 17, the package `tidemill[kafka]` and, the first time, Maven (`mvn`), which brings Kafka's classes
into `.kafka`. One broker, KRaft, no security, topics are made when they are first used. Prints a line when
the broker is ready; ends with the broker. What it keeps is in `--directory`, for the next start; without it a
temporary folder, which goes.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

VERSION = "4.4.0"
CLASSES = Path(__file__).resolve().parent.parent / ".kafka"
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>tidemill</groupId><artifactId>broker</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
<version>{VERSION}</version></dependency></dependencies></project>
"""
_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
_START_SECONDS = 240
_FETCH_SECONDS = 300


def fetch(folder: Path) -> None:
    """Kafka's classes; SystemExit where they cannot be had."""
    if (folder / f"kafka_2.13-{VERSION}.jar").exists():
        return
    if shutil.which("mvn") is None:
        sys.exit("error: Maven is missing (Debian: apt-get install -y maven)")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".kafka-") as scratch:
        Path(scratch, "pom.xml").write_text(_POM)
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={scratch}/classes"]
        try:
            subprocess.run(["mvn", "-q", "-B", *goal], cwd=scratch, check=True, timeout=_FETCH_SECONDS)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as e:
            sys.exit(f"error: Maven brings no Kafka: {e}")
        with contextlib.suppress(OSError):  # another process was faster
            Path(scratch, "classes").rename(folder)


def settings(port: int, directory: Path) -> str:
    return f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{port + 1}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{port + 1}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={directory}/data
num.partitions=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
"""


def start(port: int, directory: Path, more: str = "", classes: Path = CLASSES) -> subprocess.Popen[bytes]:
    """A broker that tells clients of itself; its log is in ``directory``. ``more``: settings that win."""
    directory.mkdir(parents=True, exist_ok=True)
    written = directory / "server.properties"
    written.write_text(settings(port, directory) + more)
    java = ["java", "-cp", f"{classes}/*", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    with (directory / "broker.log").open("ab") as log:
        if not (directory / "data" / "meta.properties").exists():
            tool = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(written)]
            subprocess.run([*java, *tool], check=True, stdout=log, stderr=log)
        broker = subprocess.Popen([*java, "kafka.Kafka", str(written)], stdout=log, stderr=log)
    deadline = time.monotonic() + _START_SECONDS
    asking = {"bootstrap.servers": f"127.0.0.1:{port}", "reconnect.backoff.max.ms": 200, "log_level": 0}
    client = AdminClient(asking)
    while not _answers(client):
        if broker.poll() is not None or time.monotonic() > deadline:
            broker.kill()
            sys.exit(f"error: the broker did not start; see {directory}/broker.log")
        time.sleep(0.1)
    return broker


def _answers(client: AdminClient) -> bool:
    """A broker's port is open before it knows that it belongs to the cluster."""
    try:
        return bool(client.list_topics(timeout=1).brokers)
    except KafkaException:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, default=9092, help="the broker's port; the next one is used, too")
    parser.add_argument("--directory", type=Path, help="where topics are kept")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    fetch(CLASSES)
    with tempfile.TemporaryDirectory() as scratch:
        broker = start(given.port, given.directory or Path(scratch))
        print(f"Kafka {VERSION} is ready at 127.0.0.1:{given.port}", flush=True)
        try:
            broker.wait()
        except KeyboardInterrupt:
            print("stopping", flush=True)
        finally:
            broker.terminate()
            broker.wait()


if __name__ == "__main__":
    main()
