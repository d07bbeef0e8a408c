"""The recorded cases beside this checkout (``../shared``) and the script that compares answers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

SHARED = Path(__file__).resolve().parents[3] / "shared"
CASES = SHARED / "goldens"


def load_comparer() -> ModuleType | None:
    """``compare_goldens.py`` as a module; None where it is not there."""
    path = SHARED / "oracle" / "compare_goldens.py"
    spec = importlib.util.spec_from_file_location("compare_goldens", path) if path.exists() else None
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMPARER = load_comparer()


def cases(area: str) -> list[Any]:
    """The cases of an area, in the order of their names."""
    return [] if COMPARER is None else list(COMPARER.find_cases(str(CASES), [area], None))


def check(case: Any, document: dict[str, Any], *, mode: str = "") -> None:
    """Raises AssertionError with the first difference; ``mode`` overrides the case's own."""
    assert COMPARER is not None
    case.mode = mode or case.mode
    try:
        COMPARER.compare(case, document)
    except COMPARER.Bad as e:
        raise AssertionError(str(e)) from None
