"""The one collector of a job's state: takes away files that nothing names any more.

Guarantee: a file that the last commit names, directly or by one of its manifests, is never removed, in
whichever partition's folder it lies (after a rescaling partitions share files); nor is one that is pinned.
Files of attempts that failed or lost are named by nothing. Cost: one listing of each folder the epoch wrote
to and one read of each new manifest; at the start of a job one listing of everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from tidemill.state.manifest import read_manifest
from tidemill.state.storage import StateFiles


@dataclass(slots=True)
class StateCollector:
    """``collect`` is told all manifests that count, operator by operator; ``pin`` keeps others."""

    files: StateFiles
    _named: dict[str, frozenset[str]] = field(default_factory=dict)
    _pins: dict[str, frozenset[str]] = field(default_factory=dict)

    def pin(self, reader: str, manifests: Iterable[str]) -> None:
        """Keeps what ``manifests`` name for ``reader`` until it is released."""
        self._pins[reader] = frozenset(manifests)

    def release(self, reader: str) -> None:
        self._pins.pop(reader, None)

    def sweep(self, manifests: Iterable[str]) -> list[str]:
        """Removes all that neither ``manifests`` nor pins name; the names that went."""
        return self._remove(self.files.names(), self._all_named(manifests))

    def collect(
        self, manifests: Mapping[str, Collection[str]], touched: Iterable[tuple[str, int]]
    ) -> list[str]:
        """The same for the operators and partitions an epoch has ``touched``, by their folders, and for files
        anywhere that only manifests of the epoch before named."""
        touched = list(touched)
        operators = {operator for operator, _ in touched}
        before = self._all_named(m for m in list(self._named) if m.partition("/")[0] in operators)
        named = self._all_named(m for operator in operators for m in manifests.get(operator, ()))
        listed = (name for op, partition in touched for name in self.files.names(f"{op}/{partition}"))
        gone = self._remove({*listed, *before}, named)
        kept = {m for names in (*manifests.values(), *self._pins.values()) for m in names}
        self._named = {manifest: files for manifest, files in self._named.items() if manifest in kept}
        return gone

    def _all_named(self, manifests: Iterable[str]) -> set[str]:
        pinned = (manifest for pins in self._pins.values() for manifest in pins)
        return {name for manifest in (*manifests, *pinned) for name in self._named_by(manifest)}

    def _named_by(self, manifest: str) -> frozenset[str]:
        names = self._named.get(manifest)
        if names is None:
            runs = read_manifest(self.files, manifest).runs
            names = self._named[manifest] = frozenset({manifest, *(run.path for run in runs)})
        return names

    def _remove(self, names: Iterable[str], named: set[str]) -> list[str]:
        gone = [name for name in names if name not in named]
        for name in gone:
            self.files.remove(name)
        return gone
