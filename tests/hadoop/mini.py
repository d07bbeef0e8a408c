"""An HDFS and a YARN of this machine, in one JVM that Python drives; see ``scripts/setup_hadoop.sh``."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway

from tidemill.runtime.spark.launch import java_program

_FETCHED = Path(__file__).parents[2] / ".hadoop"
_JARS = Path(pyspark.__file__).parent / "jars"
_CLIENT = ("hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "commons-logging", "commons-lang3")
_HADOOP = "org.apache.hadoop"
_QUEUES = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.root.default.user-limit-factor": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
}
_NODES = {
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100.0",
    "yarn.scheduler.minimum-allocation-mb": "256",
}


def native_client() -> Mapping[str, str]:
    """What a process needs in its environment to reach HDFS by Arrow."""
    jars = [str(jar) for jar in sorted(_JARS.glob("*.jar")) if jar.name.startswith(_CLIENT)]
    found = {"CLASSPATH": ":".join(jars), "ARROW_LIBHDFS_DIR": str(_FETCHED), "LIBHDFS_OPTS": "-Xmx128m"}
    return {**found, "JAVA_HOME": str(Path(java_program()).resolve().parents[1])}


@dataclass(slots=True)
class Hadoop:
    """``dfs``: where HDFS is; ``configuration``: the folder that leads Spark to both."""

    folder: Path
    dfs: str = ""
    configuration: Path = field(init=False)
    _jvm: Any = None
    _yarn: Any = None

    def __post_init__(self) -> None:
        self.configuration = self.folder / "conf"
        self.configuration.mkdir(parents=True)

    def start_dfs(self, jvm: Any) -> None:
        self._jvm = jvm
        conf = self._configured({"hdfs.minidfs.basedir": str(self.folder / "dfs")})
        builder = getattr(jvm, f"{_HADOOP}.hdfs.MiniDFSCluster$Builder")(conf)
        cluster = builder.numDataNodes(1).build()
        self.dfs = f"hdfs://127.0.0.1:{cluster.getNameNodePort()}"
        self._write("core-site.xml", self._configured({"fs.defaultFS": self.dfs}))

    def start_yarn(self, nodes: int) -> None:
        conf = self._configured({**_QUEUES, **_NODES, "fs.defaultFS": self.dfs})
        made = getattr(self._jvm, f"{_HADOOP}.yarn.server.MiniYARNCluster")("tidemill", nodes, 1, 1)
        made.init(getattr(self._jvm, f"{_HADOOP}.yarn.conf.YarnConfiguration")(conf))
        made.start()
        self._yarn = made
        self._write("yarn-site.xml", made.getConfig())

    def _configured(self, settings: Mapping[str, str]) -> Any:
        conf = getattr(self._jvm, f"{_HADOOP}.conf.Configuration")()
        for key, value in settings.items():
            conf.set(key, value)
        return conf

    def _write(self, name: str, conf: Any) -> None:
        stream = self._jvm.java.io.FileOutputStream(str(self.configuration / name))
        conf.writeXml(stream)
        stream.close()


def fetched() -> Path:
    """The folder of the classes; skips where there is none."""
    if not list(_FETCHED.glob("opentest4j-*.jar")) or not (_FETCHED / "libhdfs.so").exists():
        pytest.skip("scripts/setup_hadoop.sh has not been run")
    return _FETCHED


@contextlib.contextmanager
def hadoop(folder: Path) -> Iterator[Hadoop]:
    jars, cluster = fetched(), Hadoop(folder)
    command = [
        java_program(),
        "-Xmx768m",
        "-cp",
        f"{jars}/*:{_JARS}/*",
        "py4j.GatewayServer",
        "--die-on-broken-pipe",
        "0",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert process.stdout is not None
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=int(process.stdout.readline())))
    try:
        cluster.start_dfs(gateway.jvm)
        yield cluster
    finally:
        gateway.close()
        process.kill()
        process.communicate()
