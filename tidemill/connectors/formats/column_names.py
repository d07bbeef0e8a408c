"""Columns are found in files by their names, to the letter; as in Flink one that a file lacks is NULL.

Not where the file has it but for small and capital letters: that would be a column of NULLs for a typing
mistake. A name that is another column's of the table is no such mistake.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable


def mistaken(wanted: Iterable[str], declared: Collection[str], there: Collection[str]) -> str:
    """What is wrong with the first of the ``wanted`` names that is ``there`` in other letters only; '' where
    none is. ``declared``: all names of the table."""
    missing = [name for name in wanted if name not in there]
    if not missing:
        return ""
    free = {name.casefold(): name for name in there if name not in declared}
    found = next((name for name in missing if name.casefold() in free), None)
    if found is None:
        return ""
    other = free[found.casefold()]
    return f"There is no column '{found}', but '{other}': small and capital letters make two names."
