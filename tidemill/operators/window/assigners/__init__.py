"""Assigners: to which windows a row belongs. One file per assigner.

The clock makes the windows of ``tumble``, ``hop``, ``cumulate`` and ``calendar``: an ``Assigner`` (see
``assigner``) cuts time into slices, for kernels and as Spark SQL. ``SLICED`` has them by the name of the
window function.

Rows make the windows of ``session``, ``retractable_sessions`` and ``dynamic_cumulate``: they say which spans
(``spans``) of a key are one window.

``attached`` gives rows their windows over Arrow batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidemill.operators.window.assigners.assigner import Assigner
from tidemill.operators.window.assigners.cumulate import Cumulate
from tidemill.operators.window.assigners.hop import Hop
from tidemill.operators.window.assigners.tumble import Tumble

SLICED: Mapping[str, Callable[[int, int, int], Assigner]] = {
    "TUMBLE": Tumble.of,
    "HOP": Hop.of,
    "CUMULATE": Cumulate.of,
}
"""Of a size, a slide (or step) and an offset, all in milliseconds or all in months."""
