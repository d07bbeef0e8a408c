"""The collector of a job's state: removes files that no commit needs any more.

Guarantee: the collector never removes a file that the last commit names, directly or by a manifest, in
whichever partition's folder the file is. After a rescaling, partitions share files. It also keeps files of
later epochs, because another process may have taken over the job. No manifest names the files of failed or
lost attempts, so these files go.

Cost of an epoch: one listing of each folder that the epoch wrote to. Tasks tell what their manifests name;
other manifests are read once. In an object store the collector does not list, and reads and removes in
parallel; files that were never named wait for the next start. The start of a job lists everything once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from tidemill.state.manifest import read_manifest
from tidemill.state.storage import StateFiles


@dataclass(slots=True)
class StateCollector:
    """``collect`` takes all manifests that count, operator by operator."""

    files: StateFiles
    _named: dict[str, frozenset[str]] = field(default_factory=dict)
    _held: list[frozenset[str]] = field(default_factory=list)

    def know(self, manifest: str, files: Iterable[str]) -> None:
        """Spares the collector a look into ``manifest``, which names ``files``."""
        self._named[manifest] = frozenset({manifest, *files})

    def hold(self, manifests: Iterable[str]) -> Callable[[], None]:
        """Keeps the files of ``manifests``, whatever later epochs name, until the returned function is
        called. Any thread may call it."""
        names = frozenset(self._all_named(manifests))
        self._held.append(names)
        return partial(self._held.remove, names)

    def sweep(self, manifests: Iterable[str]) -> list[str]:
        """Removes all files that ``manifests`` do not name. Returns the removed names."""
        return self._remove(self.files.names(), self._all_named(manifests))

    def collect(
        self, manifests: Mapping[str, Collection[str]], touched: Iterable[tuple[str, int]], epoch: int
    ) -> list[str]:
        """Removes unnamed files of the operators and partitions that ``epoch`` has ``touched``, by their
        folders, and files anywhere that only manifests of the previous epoch named."""
        touched = list(touched)
        operators = {operator for operator, _ in touched}
        before = self._all_named(m for m in list(self._named) if m.partition("/")[0] in operators)
        named = self._all_named(m for operator in operators for m in manifests.get(operator, ()))
        folders = touched if self.files.storage.is_local else []
        listed = (name for op, partition in folders for name in self.files.names(f"{op}/{partition}"))
        removed = self._remove((n for n in {*listed, *before} if _epoch(n) <= epoch), named)
        known_manifests = {m for names in manifests.values() for m in names}
        self._named = {
            manifest: files for manifest, files in self._named.items() if manifest in known_manifests
        }
        return removed

    def _all_named(self, manifests: Iterable[str]) -> set[str]:
        unique = set(manifests)
        self.files.storage.each(self._read, [m for m in unique if m not in self._named])
        return {name for manifest in unique for name in self._named[manifest]}

    def _read(self, manifest: str) -> None:
        self.know(manifest, read_manifest(self.files, manifest).files)

    def _remove(self, names: Iterable[str], named: set[str]) -> list[str]:
        held = list(self._held)
        unneeded = [
            name for name in names if name not in named and not any(name in held_names for held_names in held)
        ]
        self.files.storage.each(self.files.remove, unneeded)
        return unneeded


def _epoch(name: str) -> int:
    """The epoch that wrote a file, from the beginning of its name. A name of no known form belongs to the
    first."""
    number = name.rpartition("/")[2].partition(".")[0]
    return int(number) if number.isdigit() else 0
