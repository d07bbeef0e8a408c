"""Matches a table's columns with a file's columns by exact name. As in Flink, a column that a file lacks is
NULL.

If the file's name differs only in upper and lower case, the column is an error instead: a typing mistake
would otherwise give a column of NULLs. A name that belongs to another column of the table is no mistake.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable


def mistaken(wanted: Iterable[str], declared: Collection[str], there: Collection[str]) -> str:
    """The error text for the first ``wanted`` name that the file has only in another case; '' if there is
    none. ``declared``: all column names of the table; ``there``: those of the file. Example: wanted ``id``,
    file ``ID`` gives "There is no column 'id', but 'ID': small and capital letters make two names."."""
    missing = [name for name in wanted if name not in there]
    if not missing:
        return ""
    by_folded_name = {name.casefold(): name for name in there if name not in declared}
    mistyped = next((name for name in missing if name.casefold() in by_folded_name), None)
    if mistyped is None:
        return ""
    file_name = by_folded_name[mistyped.casefold()]
    return f"There is no column '{mistyped}', but '{file_name}': small and capital letters make two names."
