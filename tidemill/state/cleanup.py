"""The one collector of a job's state: takes away files that nothing names any more.

Guarantee: a file that the last commit names, directly or by one of its manifests, is never removed, in
whichever partition's folder it lies (after a rescaling partitions share files); nor is one of a later epoch
(the job may have been taken over by another process, which goes on). Files of attempts that failed or lost
are named by nothing.

Cost of an epoch: one read of each new manifest, and one listing of each folder the epoch wrote to; in an
object store, where what was never named is left to the next start, no listing, and reads and removals beside
each other. At the start of a job one listing of everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from tidemill.state.manifest import read_manifest
from tidemill.state.storage import StateFiles


@dataclass(slots=True)
class StateCollector:
    """``collect`` is told all manifests that count, operator by operator."""

    files: StateFiles
    _named: dict[str, frozenset[str]] = field(default_factory=dict)

    def sweep(self, manifests: Iterable[str]) -> list[str]:
        """Removes all that ``manifests`` do not name; the names that went."""
        return self._remove(self.files.names(), self._all_named(manifests))

    def collect(
        self, manifests: Mapping[str, Collection[str]], touched: Iterable[tuple[str, int]], epoch: int
    ) -> list[str]:
        """The same for the operators and partitions that ``epoch`` has ``touched``, by their folders, and for
        files anywhere that only manifests of the epoch before named."""
        touched = list(touched)
        operators = {operator for operator, _ in touched}
        before = self._all_named(m for m in list(self._named) if m.partition("/")[0] in operators)
        named = self._all_named(m for operator in operators for m in manifests.get(operator, ()))
        folders = touched if self.files.storage.is_local else []
        listed = (name for op, partition in folders for name in self.files.names(f"{op}/{partition}"))
        gone = self._remove((n for n in {*listed, *before} if _epoch(n) <= epoch), named)
        kept = {m for names in manifests.values() for m in names}
        self._named = {manifest: files for manifest, files in self._named.items() if manifest in kept}
        return gone

    def _all_named(self, manifests: Iterable[str]) -> set[str]:
        wanted = set(manifests)
        self.files.storage.each(self._read, [m for m in wanted if m not in self._named])
        return {name for manifest in wanted for name in self._named[manifest]}

    def _read(self, manifest: str) -> None:
        runs = read_manifest(self.files, manifest).runs
        self._named[manifest] = frozenset({manifest, *(run.path for run in runs)})

    def _remove(self, names: Iterable[str], named: set[str]) -> list[str]:
        gone = [name for name in names if name not in named]
        self.files.storage.each(self.files.remove, gone)
        return gone


def _epoch(name: str) -> int:
    """The epoch that wrote a file, which its name begins with; one of no known form is of the first."""
    number = name.rpartition("/")[2].partition(".")[0]
    return int(number) if number.isdigit() else 0
