"""What savepoints there are, and what is in one: for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from tidemill.errors import StateError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.savepoint import STATE, Savepoint, unreadable
from tidemill.state.manifest import read_manifest
from tidemill.state.storage import StateFiles

_LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A line about a savepoint: ``kind`` is job, fact, source or operator; ``rows`` and ``size`` in bytes of
    operators, and ``size`` of the whole."""

    kind: str
    id: str
    description: str
    rows: int | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """``before`` and ``after`` are '' where one of the savepoints lacks the part."""

    kind: str
    id: str
    before: str
    after: str


def savepoints_in(directory: Storage) -> list[Savepoint]:
    """Those right below, and the directory itself if it is one, oldest first; what is none is left out."""
    found: list[Savepoint] = []
    try:
        names = directory.directories("")
    except OSError as e:
        raise unreadable(directory, e) from e
    for name in ("", *names):
        try:
            one = Savepoint.open(directory.below(name) if name else directory)
        except StateError:
            continue
        if one.finished:
            found.append(one)
    return sorted(found, key=lambda one: (one.created, one.where))


def parts(savepoint: Savepoint) -> Iterator[Part]:
    """The job, the facts that its state depends on, sources' offsets, operators with their state."""
    identity, commit = savepoint.identity, savepoint.commit
    job = f"{identity.name}, after epoch {savepoint.epoch}"
    yield Part(kind="job", id=identity.job_id, description=job, size=savepoint.size)
    for fact, value in sorted(identity.facts.items()):
        yield Part(kind="fact", id=fact, description=value)
    for source, offset in sorted(commit.offsets.items()) if commit is not None else ():
        yield Part(kind="source", id=source, description=json.dumps(offset)[:_LONGEST])
    files = StateFiles.open(savepoint.storage.below(STATE), savepoint.what)
    for operator in identity.operators:
        named = [read_manifest(files, name) for name in savepoint.manifests({operator: ""})]
        text = identity.described(operator)
        rows, size = sum(m.rows for m in named), sum(m.size for m in named)
        yield Part(kind="operator", id=operator, description=text, rows=rows, size=size)


def differences(first: Savepoint, second: Savepoint) -> list[Difference]:
    """The parts that are not equal. Of operators the numbers of rows are compared, and the files."""
    before, after = ({(p.kind, p.id): _said(p) for p in parts(one)} for one in (first, second))
    before_files, after_files = _files(first), _files(second)
    found = []
    for kind, key in [*before, *(k for k in after if k not in before)]:
        a, b = before.get((kind, key), ""), after.get((kind, key), "")
        if a != b or (kind == "operator" and before_files.get(key) != after_files.get(key)):
            found.append(Difference(kind=kind, id=key, before=a, after=b))
    return found


def _said(part: Part) -> str:
    if part.kind == "operator":
        return f"{part.rows} rows, {part.size} bytes"
    return part.description


def _files(savepoint: Savepoint) -> dict[str, frozenset[tuple[int, int]]]:
    """Of each operator what is in its runs, whatever they are called."""
    found: dict[str, frozenset[tuple[int, int]]] = {}
    for operator in savepoint.identity.operators:
        files = savepoint.state_files({operator: ""}).items()
        found[operator] = frozenset((f.size, f.checksum) for name, f in files if name.endswith(".arrow"))
    return found
