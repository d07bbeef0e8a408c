"""Which JVM writes the archive of classes, and which ones use it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tidemill.runtime.spark import class_archive, launch
from tidemill.runtime.spark.class_archive import ClassArchive, archive_key, cache_folder

FINISHED = class_archive._MAGIC + b"classes"


def _archive(tmp_path: Path, key: str = "k") -> ClassArchive:
    return ClassArchive(folder=tmp_path / "cache", key=key)


def test_the_first_jvm_writes_and_those_after_it_map(tmp_path: Path) -> None:
    archive = _archive(tmp_path)
    unfinished = archive.folder / "classes-k.part"
    assert archive.options().startswith(f"-XX:ArchiveClassesAtExit={unfinished} ")
    assert archive.options() == ""  # while the first one runs
    unfinished.write_bytes(b"\0" * 100)  # and while it writes: the beginning comes last
    assert archive.options() == ""
    unfinished.write_bytes(FINISHED)
    assert archive.options().startswith(f"-XX:SharedArchiveFile={archive.file} ")
    assert archive.file.read_bytes() == FINISHED
    assert not unfinished.exists()
    assert os.stat(archive.folder).st_mode & 0o077 == 0


def test_a_jvm_that_was_killed_is_not_waited_for(tmp_path: Path) -> None:
    archive = _archive(tmp_path)
    archive.options()
    begun = time.time() - class_archive._ABANDONED_SECONDS - 1
    os.utime(archive.folder / "classes-k.part", (begun, begun))
    assert "ArchiveClassesAtExit" in archive.options()
    assert archive.options() == ""


def test_there_are_few_archives_and_those_in_use_stay(tmp_path: Path) -> None:
    for key in "abcd":
        archive = _archive(tmp_path, key)
        archive.options()
        (archive.folder / f"classes-{key}.part").write_bytes(FINISHED)
        archive.options()
    fifth = _archive(tmp_path, "e")
    assert fifth.options() == ""
    unused = time.time() - class_archive._UNUSED_SECONDS - 1
    for key in "ab":
        os.utime(_archive(tmp_path, key).file, (unused, unused))
    assert "SharedArchiveFile" in _archive(tmp_path, "a").options()
    assert "ArchiveClassesAtExit" in fifth.options()
    assert sorted(path.name for path in fifth.folder.glob("*.jsa")) == [f"classes-{key}.jsa" for key in "acd"]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("a file")
    assert _archive(tmp_path).options() == ""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache" / "below"))
    assert cache_folder() is None


def _java(tmp_path: Path) -> tuple[str, str]:
    """A Java with an archive of its own classes, and a Spark."""
    for path in ("java/bin/java", "java/lib/server/classes.jsa", "spark/jars/a.jar"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    return str(tmp_path / "java/bin/java"), str(tmp_path / "spark")


def test_other_jars_are_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    given = _java(tmp_path)
    first = archive_key(*given)
    assert first
    assert archive_key(*given) == first
    (tmp_path / "spark/jars/b.jar").write_text("b")
    assert archive_key(*given) not in ("", first)


def test_there_is_none_where_java_cannot_have_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    given = _java(tmp_path)
    (tmp_path / "spark/conf").mkdir()
    assert archive_key(*given)
    (tmp_path / "spark/conf/spark-defaults.conf").write_text("")
    assert archive_key(*given) == ""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "nowhere"))
    assert archive_key(*given)
    (tmp_path / "java/lib/server/classes.jsa").unlink()
    assert archive_key(*given) == ""


def test_options_that_decide_on_archives_stay_as_they_are(tmp_path: Path) -> None:
    archive = _archive(tmp_path)
    exits = "-XX:+ExitOnOutOfMemoryError"
    assert launch._java_options("-Xss1m", archive).startswith(f"-Xss1m {exits} -XX:ArchiveClassesAtExit=")
    assert launch._java_options("-Xshare:off", archive) == f"-Xshare:off {exits}"
    assert launch._java_options("-Xss1m", None) == f"-Xss1m {exits}"
    assert launch._java_options("-XX:-ExitOnOutOfMemoryError", None) == "-XX:-ExitOnOutOfMemoryError"


@pytest.mark.parametrize("name", ["with blank", 'quo"ted', "back\\slash"])
def test_a_folder_that_options_cannot_name_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
    assert cache_folder() is None


def test_an_archive_that_java_does_not_start_with_goes(tmp_path: Path) -> None:
    archive = _archive(tmp_path)
    archive.discard()
    archive.options()
    archive.file.write_bytes(FINISHED)
    archive.discard()
    assert not archive.file.exists()
