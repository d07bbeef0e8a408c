"""Results as pandas frames.

A changelog is folded to the multiset of its final rows: an insertion or update-after adds a row, an
update-before or deletion takes one equal row away. Rows keep the order in which they last came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tidemill.errors import InternalError
from tidemill.late import late
from tidemill.session.rows import values
from tidemill.session.rows.decoder import ChangelogRow
from tidemill.types.logical import Field

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = late("pandas")


def folded(fields: Sequence[Field], rows: Iterable[ChangelogRow]) -> list[tuple[Any, ...]]:
    """The final rows, as Python values."""
    types = [f.type for f in fields]
    held: dict[str, tuple[Any, ...]] = {}
    counts: Counter[str] = Counter()
    for kind, carried in rows:
        row = tuple(values.python_value(t, v) for t, v in zip(types, carried, strict=True))
        key = repr(carried)
        counts[key] += kind.weight
        held.pop(key, None)
        if counts[key] > 0:
            held[key] = row
    if any(n < 0 for n in counts.values()):
        raise InternalError("A changelog took away rows that it had never added")
    return [row for key, row in held.items() for _ in range(counts[key])]


def folded_pandas(fields: Sequence[Field], rows: Iterable[ChangelogRow]) -> pd.DataFrame:
    """The final rows with one column per field; values as ``session.rows.row`` describes."""
    final = folded(fields, rows)
    columns = {
        f.name: pd.Series([r[i] for r in final], dtype=None if final else object)
        for i, f in enumerate(fields)
    }
    return pd.DataFrame(columns)
