"""Reclaim the space of expired records without reading all records.

The manifest entry of a run has two times: when half of its rows had been written, and when the last of
them had. If the last row of a run has expired, the run is dropped unread. If half of the run has
expired, it is rewritten without the expired rows, slice by slice within the epoch's fuel. Other runs
are not opened.

So an expired row costs at most the copy of one other row, and state is at most about twice the live
rows.
"""

from __future__ import annotations

from tidemill.state.layout import Layout
from tidemill.state.run import RunReader
from tidemill.state.spine import Layer, Merge, SpineOptions


def reclaimed(
    layers: list[Layer], layout: Layout, options: SpineOptions, now: int, merge: Merge
) -> list[Layer]:
    """The layers without expired runs and, as far as ``options.fuel`` allows, without half-expired runs.

    A version of a record below an expired version is older, so it has expired, too.
    """
    if not layout.ttl:
        return layers
    fuel = options.fuel
    result: list[Layer] = []
    for number, layer in enumerate(layers):
        readers: list[RunReader] = []
        for reader in layer:
            middle, last = (reader.run.written if reader.run else None) or (now, now)
            if last + layout.ttl <= now:
                continue
            if fuel > 0 and middle + layout.ttl <= now:
                rows = min(reader.rows, fuel)
                fuel -= rows
                readers += merge([reader.cut(0, rows)], number + 1 == len(layers))
                readers += [reader.cut(rows, reader.rows)] if rows < reader.rows else []
            else:
                readers.append(reader)
        result += [tuple(readers)] if readers else []
    return result
