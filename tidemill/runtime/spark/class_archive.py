"""An archive of the classes that Spark's JVM loads, in the user's cache folder.

A third of a start is Java reading some fifteen thousand classes from Spark's jars. Java can store classes
in the form that they have in memory (class data sharing). If a JVM was told to, it writes the archive when it
ends, after its program has ended, and later JVMs map the file. The archive does not change the JVM's
behaviour: Java compares the archive with itself and with the jars, and reads the jars if they differ.

Nothing here may keep Spark from starting: where anything is missing there is no archive. One takes 150 MB of
disk. Each Java with each place of jars, such as a virtual environment, has its own: four at most, and those
that nobody used for a week make room.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from tidemill.files.private import make_private

_MAGIC = (0xF00BABA8).to_bytes(4, "little")
"""How a finished archive begins; Java writes the beginning last."""
_ABANDONED_SECONDS = 3600.0
"""After so long without a result the JVM that was to write the archive has been killed, or runs for days."""
_PLAIN = re.compile(r"[^\s'\"\\]+")
_MOST = 4
_UNUSED_SECONDS = 7 * 86_400.0
_QUIETLY = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""Java warns of every class that an archive has to leave out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassArchive:
    """``folder``: where archives are; ``key``: of what Java and Spark this one is."""

    folder: Path
    key: str

    @property
    def file(self) -> Path:
        return self.folder / f"classes-{self.key}.jsa"

    @property
    def _unfinished(self) -> Path:
        return self.folder / f"classes-{self.key}.part"

    def options(self) -> str:
        """What the next JVM is to be told: to use the archive, to write it, or neither."""
        try:
            make_private(str(self.folder))
            self._adopt()
            if self.file.exists():
                os.utime(self.file)
                return f"-XX:SharedArchiveFile={self.file} {_QUIETLY}"
            return f"-XX:ArchiveClassesAtExit={self._unfinished} {_QUIETLY}" if self._claim() else ""
        except Exception:  # any: an archive is a convenience
            return ""

    def discard(self) -> None:
        """A JVM did not start with it; the next one starts without."""
        with contextlib.suppress(OSError):
            self.file.unlink(missing_ok=True)

    def _adopt(self) -> None:
        """Takes a written archive into use."""
        with contextlib.suppress(FileNotFoundError):
            with self._unfinished.open("rb") as file:
                if file.read(len(_MAGIC)) != _MAGIC:
                    return
            os.replace(self._unfinished, self.file)

    def _claim(self) -> bool:
        """Whether this process's JVM is the one to write the archive: one at a time, and if there is room."""
        now = time.time()
        found = [*self.folder.glob("classes-*.jsa"), *self.folder.glob("classes-*.part")]
        used = {path: path.stat().st_mtime for path in found if path != self._unfinished}
        for path, last in used.items():
            if now - last > _UNUSED_SECONDS:
                path.unlink(missing_ok=True)
        if sum(now - last <= _UNUSED_SECONDS for last in used.values()) >= _MOST:
            return False
        with contextlib.suppress(FileNotFoundError):
            if now - self._unfinished.stat().st_mtime > _ABANDONED_SECONDS:
                self._unfinished.unlink(missing_ok=True)
        try:
            self._unfinished.open("x").close()
        except FileExistsError:
            return False
        return True


def archive_of(java: str, spark_home: str) -> ClassArchive | None:
    """The archive of a Spark of ``spark_home`` run by ``java``; None where there can be none."""
    folder = cache_folder()
    key = archive_key(java, spark_home)
    return ClassArchive(folder=folder, key=key) if folder is not None and key else None


def cache_folder() -> Path | None:
    """``$XDG_CACHE_HOME/tidemill`` (``~/.cache``); None where there is no such place, or its name has blanks
    or quotes: Spark cuts the text of Java's options there."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    try:
        os.makedirs(base, exist_ok=True)
    except OSError:
        return None
    fits = os.path.isabs(base) and _PLAIN.fullmatch(base) and os.access(base, os.W_OK)
    return Path(base) / "tidemill" if fits else None


def archive_key(java: str, spark_home: str) -> str:
    """A short text of everything that an archive depends on. '' if Java cannot have an archive: it has no
    archive of its own classes, or Spark's classpath contains folders."""
    program = Path(os.path.realpath(java))
    home = program.parent.parent
    jars = sorted(Path(spark_home, "jars").glob("*.jar"))
    settings = Path(os.environ.get("SPARK_CONF_DIR") or Path(spark_home, "conf"))
    base = home / "lib" / "server" / "classes.jsa"
    if not jars or not base.exists() or (settings.is_dir() and any(settings.iterdir())):
        return ""
    stats = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in (base, program, *jars)]
    return hashlib.sha256(repr(stats).encode()).hexdigest()[:16]
