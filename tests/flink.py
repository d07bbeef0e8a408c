"""Real Flink with more jars than its own: of the oracle (``$FLINK_ORACLE``, or ``../shared/oracle/oracle``),
linked into one folder with jars from Maven Central, for ``$ORACLE_FLINK``."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ORACLE = os.environ.get("FLINK_ORACLE", str(ROOT / ".." / "shared" / "oracle" / "oracle"))
KAFKA = "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2"
ICEBERG = "org.apache.iceberg:iceberg-flink-runtime-2.1:1.11.0"
SQLITE = "org.xerial:sqlite-jdbc:3.46.1.3"
_JARS = ROOT / ".flink"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tidemill</groupId><artifactId>flink</artifactId><version>1</version><dependencies><dependency>
<groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version><exclusions><exclusion><groupId>*</groupId>
<artifactId>*</artifactId></exclusion></exclusions></dependency></dependencies></project>
"""
_SECONDS = 300


class MissingError(Exception):
    """There is no oracle, no Maven, or no such jar; the text says which."""


def flink_with(name: str, coordinates: Iterable[str], files: Iterable[Path] = ()) -> dict[str, str]:
    """Variables of the oracle's environment; ``files``: jars that are here. MissingError."""
    if not Path(ORACLE).exists():
        raise MissingError(f"no oracle at {ORACLE} ($FLINK_ORACLE)")
    plain = {key: value for key, value in os.environ.items() if key != "ORACLE_FLINK"}
    told = subprocess.run([ORACLE, "setup"], stdout=subprocess.PIPE, text=True, check=False, env=plain)
    own = sorted(Path(told.stdout.strip()).glob("flink-*/lib/*.jar"))
    if told.returncode or not own:
        raise MissingError("the oracle has no Flink")
    folder = _JARS / name / "lib"
    folder.mkdir(parents=True, exist_ok=True)
    for jar in (*own, *files, *map(fetched, coordinates)):
        link = folder / jar.name
        if not link.exists():
            link.unlink(missing_ok=True)
            link.symlink_to(jar.resolve())
    return {**plain, "ORACLE_FLINK": str(folder.parent)}


def fetched(coordinate: str) -> Path:
    """The jar GROUP:ARTIFACT:VERSION without its dependencies, which Maven brings once. MissingError."""
    group, artifact, version = coordinate.split(":")
    jar = _JARS / f"{artifact}-{version}.jar"
    if jar.exists():
        return jar
    if shutil.which("mvn") is None:
        raise MissingError("Maven is missing (Debian: apt-get install -y maven)")
    _JARS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_JARS) as scratch:
        Path(scratch, "pom.xml").write_text(_POM.format(group, artifact, version))
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={scratch}"]
        try:
            subprocess.run(["mvn", "-q", "-B", *goal], cwd=scratch, check=True, timeout=_SECONDS)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as e:
            raise MissingError(f"Maven brings no {coordinate}: {e}") from None
        Path(scratch, jar.name).rename(jar)
    return jar
