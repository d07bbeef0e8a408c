"""The spine: the layers of runs of a state table, newest first, merged with bounded work per epoch.

A layer is a tuple of readers with disjoint, ascending ranges of codes. If a layer is no longer small
beside the layer below, it sinks into it: slice by slice from its lowest code, each slice merged with
the same range below.

    newer: [a b c d e f]          newer:       [c d e f]
    older: [a   c     f]   ->     older: [a b][c     f]

A half-sunk layer simply starts at a higher code, and nothing else records the progress. Every state in
between is a correct spine, because layers below a range are older.

Cost: an epoch that adds r rows merges at most ``fuel`` rows (a constant plus a multiple of r), or fewer
if the rows are wide. So no epoch pays for the size of the whole state. Over time each row is merged
O(log(N / r)) times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidemill.state.layout import Layout
from tidemill.state.run import RunReader

Layer = tuple[RunReader, ...]
Merge = Callable[[list[RunReader], bool], list[RunReader]]
"""Merges readers, newest first, to ones with ascending ranges; the flag says that nothing lies below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpineOptions:
    """Limits of the merges of an epoch.

    - ``ratio``: a layer sinks if ``ratio`` times its rows reach the layer below.
    - ``fuel``: the rows that an epoch may always merge. ``fuel_per_row``: more rows for each row that
      it adds, and once more for each layer over ``calm_layers``.
    - ``slice_rows``: the smallest piece that is worth a file. ``slice_bytes``: the bytes of one merge
      step.
    - ``wide_row``: a row of more bytes counts as several rows.
    - ``lazy_layers``: up to so many layers are not merged. Then the two layers that are cheapest to
      merge are merged, whatever ``ratio`` says.
    - ``packed_rows``: runs of so many rows are packed (see ``state.packing``). Smaller ones are soon merged.
    - ``packed_gain``: only runs that become smaller by this factor: packing takes processor time.
      ``presence_gain``: the same, for rows that only say that a value is there.
    """

    ratio: int = 2
    fuel: int = 1 << 18
    fuel_per_row: int = 6
    calm_layers: int = 10
    slice_rows: int = 1 << 15
    wide_row: int = 1 << 10
    slice_bytes: int = 1 << 28
    lazy_layers: int = 0
    packed_rows: int = 1 << 14
    packed_gain: float = 3.0
    presence_gain: float = 1.5

    def gain(self, layout: Layout) -> float:
        """How much smaller a run must become to be packed."""
        return self.presence_gain if layout.says_presence else self.packed_gain

    def budget(self, added: int, layers: int) -> int:
        return self.fuel + self.fuel_per_row * added * max(1, layers - self.calm_layers)


def layer_rows(layer: Layer) -> int:
    return sum(reader.rows for reader in layer)


def compact(layers: list[Layer], options: SpineOptions, added: int, merge: Merge) -> list[Layer]:
    """The layers after this epoch's share of merging. The smallest merges come first."""
    layers = [layer for layer in layers if layer]
    budget: float = options.budget(added, len(layers))
    while (at := _next_sinking(layers, options)) is not None:
        upper, lower = layers[at], layers[at + 1]
        last = at + 2 == len(layers)
        share = _share((*upper, *lower), options)
        if budget < options.slice_rows and budget * share < layer_rows(upper) + layer_rows(lower):
            break
        upper, lower, spent = _sink(upper, lower, max(1, int(budget * share)), last, merge)
        budget -= -(-spent // share)
        layers[at : at + 2] = [layer for layer in (upper, lower) if layer]
    return layers


def _share(readers: Layer, options: SpineOptions) -> float:
    """How many of such rows count as one row of ordinary width; at most 1."""
    rows = layer_rows(readers)
    width = sum(r.rows * r.bytes_per_row for r in readers) / rows
    return min(1.0, options.wide_row / width) if width else 1.0


def _next_sinking(layers: list[Layer], options: SpineOptions) -> int | None:
    """The newest layer that should sink. A layer that has begun to sink, and so starts higher, comes
    first."""
    if options.lazy_layers:
        return _cheapest_sinking(layers) if len(layers) > options.lazy_layers else None
    for at in range(len(layers) - 1):
        upper, lower = layers[at], layers[at + 1]
        if _begun(upper) or layer_rows(upper) * options.ratio >= layer_rows(lower):
            return at
    return None


def _cheapest_sinking(layers: list[Layer]) -> int:
    """The layer that has begun to sink, otherwise the layer with the fewest rows together with the next
    layer."""
    pairs = range(len(layers) - 1)
    return min(pairs, key=lambda at: (not _begun(layers[at]), sum(map(layer_rows, layers[at : at + 2]))))


def _begun(layer: Layer) -> bool:
    """Of a layer that a rescaling has cut this cannot be seen."""
    first = layer[0].run
    return first is not None and first.start > 0 and first.within is None


def _sink(upper: Layer, lower: Layer, budget: int, last: bool, merge: Merge) -> tuple[Layer, Layer, int]:
    """Merges the lowest range of ``upper`` into ``lower``, up to ``budget`` rows."""
    above, rest = _split(lower, upper[0].bounds[0])
    ceiling = _ceiling(upper, rest, budget)
    now, later = _split(upper, ceiling)
    beneath, beyond = _split(rest, ceiling)
    spent = layer_rows(now) + layer_rows(beneath)
    merged = merge([*now, *beneath], last)
    return later, (*above, *merged, *beyond), spent


def _ceiling(upper: Layer, rest: Layer, budget: int) -> int | None:
    """The exclusive upper code of a slice of about ``budget`` rows; None for everything."""
    high, low = layer_rows(upper), layer_rows(rest)
    if high + low <= budget:
        return None
    layer, rows = (rest, low) if low >= high else (upper, high)
    wanted = max(1, rows * budget // (high + low))
    for reader in layer:
        if wanted <= reader.rows:
            return reader.code(wanted - 1) + 1
        wanted -= reader.rows
    return None


def _split(layer: Layer, bound: int | None) -> tuple[Layer, Layer]:
    """The rows with a code below ``bound``, and the others."""
    if bound is None:
        return layer, ()
    below: list[RunReader] = []
    above: list[RunReader] = []
    for reader in layer:
        lo, hi = reader.bounds
        if hi < bound:
            below.append(reader)
        elif lo >= bound:
            above.append(reader)
        else:
            at = reader.at(bound)
            below.append(reader.cut(0, at))
            above.append(reader.cut(at, reader.rows))
    return tuple(below), tuple(above)
