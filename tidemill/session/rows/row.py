"""Row: a tuple of Python values, with column names and a RowKind.

Python types by SQL type:

- int, float, bool, str, bytes, ``decimal.Decimal``, ``datetime.date``, ``datetime.time``;
- ``datetime.datetime``, without a zone for TIMESTAMP and in UTC for TIMESTAMP_LTZ;
- int (months) or ``timedelta`` for intervals;
- list for ARRAY, ``Row`` for ROW;
- dict for MAP and MULTISET (value to count); a key that Python cannot hash becomes a tuple.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidemill.changelog.rowkind import RowKind


class Row(tuple[Any, ...]):
    """Compares as the tuple of its values. ``row["name"]`` and ``row.as_dict()`` use column names.

    >>> Row((1, "a"), ("n", "s"))["s"]
    'a'
    """

    kind: RowKind
    names: tuple[str, ...]

    def __new__(
        cls, values: Iterable[Any], names: tuple[str, ...] = (), kind: RowKind = RowKind.INSERT
    ) -> Row:
        row = super().__new__(cls, values)
        row.kind = kind
        row.names = names
        return row

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, str):
            if item not in self.names:
                raise KeyError(item)
            return super().__getitem__(self.names.index(item))
        return super().__getitem__(item)

    def get_row_kind(self) -> RowKind:
        """PyFlink's name for ``kind``."""
        return self.kind

    def as_dict(self) -> dict[str, Any]:
        return dict(zip(self.names, self, strict=False))

    @property
    def _fields(self) -> tuple[str, ...]:
        """With ``_asdict``, libraries such as polars recognise a tuple whose values have names."""
        return self.names

    _asdict = as_dict

    def __repr__(self) -> str:
        return f"{self.kind.short}{tuple.__repr__(self)}"
