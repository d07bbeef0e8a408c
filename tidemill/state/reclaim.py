"""Gives back the space of expired records without looking at all of them.

A run's manifest entry says when half of its rows, and when the last of them, had been written. A run whose
last row has expired goes as it is. One of which half has expired is written again without those rows, slice
by slice within an epoch's fuel: so a row that expires costs at most one other row's copy, and what is kept
is at most about twice what lives. Other runs are not opened.
"""

from __future__ import annotations

from tidemill.state.layout import Layout
from tidemill.state.run import RunReader
from tidemill.state.spine import Layer, Merge, SpineOptions


def reclaimed(
    layers: list[Layer], layout: Layout, options: SpineOptions, now: int, merge: Merge
) -> list[Layer]:
    """The layers without expired runs and, as far as ``options.fuel`` goes, without half-expired ones.

    A version of a record below an expired one is older and has expired, too.
    """
    if not layout.ttl:
        return layers
    fuel = options.fuel
    result: list[Layer] = []
    for number, layer in enumerate(layers):
        kept: list[RunReader] = []
        for reader in layer:
            middle, last = (reader.run.written if reader.run else None) or (now, now)
            if last + layout.ttl <= now:
                continue
            if fuel > 0 and middle + layout.ttl <= now:
                rows = min(reader.rows, fuel)
                fuel -= rows
                kept += merge([reader.cut(0, rows)], number + 1 == len(layers))
                kept += [reader.cut(rows, reader.rows)] if rows < reader.rows else []
            else:
                kept.append(reader)
        result += [tuple(kept)] if kept else []
    return result
