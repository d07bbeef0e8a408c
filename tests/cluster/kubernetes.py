"""A Kubernetes of this machine, as far as Spark's driver asks for one: an API server that keeps pods in
memory and runs each as a process, with the environment that its spec says.

What an image is for is not shown: the machine's own Spark and Java serve for it, by the command with which
Spark's image begins an executor. Each pod has a folder and a loopback address of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.cluster.standalone import HOME
from tidemill.runtime.spark.launch import java_program

Json = dict[str, Any]
_POD = re.compile(r"/api/v1/namespaces/[^/]+/pods/([^/]+)$")
_LABEL = re.compile(r"([\w./-]+) ?(!=|=|in) ?(?:\(([^)]*)\)|([^,]*))")
_EXECUTOR = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


@dataclass(slots=True)
class Pod:
    """``said``: as it was created."""

    said: Json
    address: str
    process: subprocess.Popen[bytes]

    @property
    def environment(self) -> dict[str, str]:
        return _environment(self.said, self.address)

    def shown(self) -> Json:
        status = self.process.poll()
        phase = "Running" if status is None else "Succeeded" if status == 0 else "Failed"
        metadata = {
            "uid": self.said["metadata"]["name"],
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "resourceVersion": "1",
            **self.said["metadata"],
        }
        told = {"phase": phase, "podIP": self.address, "containerStatuses": []}
        return {**self.said, "kind": "Pod", "apiVersion": "v1", "metadata": metadata, "status": told}


@dataclass(slots=True)
class Kubernetes:
    """``pods``: those there are, by name; ``created``: all there ever were."""

    folder: Path
    url: str = ""
    pods: dict[str, Pod] = field(default_factory=dict)
    created: list[Pod] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Json) -> tuple[int, Json]:
        with self._lock:
            named = _POD.match(path)
            if method == "POST" and path.endswith("/pods"):
                return 201, self._create(body).shown()
            if named and named[1] in self.pods:
                pod = self.pods[named[1]]
                if method == "DELETE":
                    self._remove(named[1])
                return 200, pod.shown()
            if path.endswith("/pods"):
                chosen = self._chosen(query.get("labelSelector", [""])[0])
                for name in chosen if method == "DELETE" else ():
                    self._remove(name)
                items = [self.pods[name].shown() for name in chosen if name in self.pods]
                return 200, {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}
            if method == "GET" and not named:
                return 200, {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []}
            return (201, body) if method == "POST" else (404, {"kind": "Status", "status": "Failure"})

    def stop(self) -> None:
        with self._lock:
            for name in list(self.pods):
                self._remove(name)

    def _create(self, said: Json) -> Pod:
        name = said["metadata"].setdefault("name", uuid.uuid4().hex)
        address = f"127.0.1.{len(self.created) + 1}"
        place = self.folder / name
        place.mkdir(parents=True)
        with (place / "log").open("wb") as log:
            process = subprocess.Popen(
                _command(_environment(said, address)),
                cwd=place,
                env=_environment(said, address) | _own(place),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        pod = self.pods[name] = Pod(said, address, process)
        self.created.append(pod)
        return pod

    def _remove(self, name: str) -> None:
        pod = self.pods.pop(name)
        pod.process.kill()
        pod.process.wait()

    def _chosen(self, selector: str) -> list[str]:
        """The pods whose labels are as said: ``a=b,c!=d,e in (f,g)``."""
        return [
            name
            for name, pod in self.pods.items()
            if all(
                (pod.said["metadata"]["labels"].get(label) in (some or one).split(",")) == (sign != "!=")
                for label, sign, some, one in _LABEL.findall(selector)
            )
        ]


def _environment(said: Json, address: str) -> dict[str, str]:
    """Of its first container; what refers to the pod itself is filled in."""
    of_pod = {"status.podIP": address, "metadata.name": said["metadata"]["name"]}
    return {
        entry["name"]: of_pod[entry["valueFrom"]["fieldRef"]["fieldPath"]]
        if "valueFrom" in entry
        else entry.get("value", "")
        for entry in said["spec"]["containers"][0]["env"]
    }


def _own(place: Path) -> dict[str, str]:
    """What an image and its mounts have, here folders of the pod."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "JAVA_HOME", "HOME", "LANG")}
    for name in ("local", "conf"):
        (place / name).mkdir()
    own = {"SPARK_LOCAL_DIRS": "local", "SPARK_CONF_DIR": "conf"}
    return {**kept, "SPARK_HOME": str(HOME), **{key: str(place / name) for key, name in own.items()}}


def _command(given: dict[str, str]) -> list[str]:
    """As the image's ``entrypoint.sh`` begins an executor."""
    options = [given[key] for key in sorted(given) if key.startswith("SPARK_JAVA_OPT_")]
    memory = f"-Xmx{given['SPARK_EXECUTOR_MEMORY']}"
    arguments = [part for key, name in _ARGUMENTS.items() for part in (key, given[name])]
    return [java_program(), *options, memory, "-cp", f"{HOME}/jars/*", _EXECUTOR, *arguments]


@contextlib.contextmanager
def kubernetes(folder: Path) -> Iterator[Kubernetes]:
    """Serves until the block ends; then no pod is left."""
    cluster = Kubernetes(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            url = urlsplit(self.path)
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.loads(data) if data else {}
            status, answer = cluster.answer(self.command, url.path, parse_qs(url.query), body)
            said = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    cluster.url = f"k8s://http://127.0.0.1:{server.server_port}"
    try:
        yield cluster
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        cluster.stop()
