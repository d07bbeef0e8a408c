"""Modules that are loaded when something of them is first used.

A new session, a SELECT of constants or a SHOW needs less than half of Tidemill's modules. All of them take a
second of processor time to import, most of it to make their classes.
"""

from __future__ import annotations

import gc
from importlib import import_module
from types import ModuleType
from typing import Any


class _Late:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(loaded(self._name), attribute)


def late(name: str) -> Any:
    """Stands for the module ``name``. Type checkers get the module itself from an import beside it, under
    ``if TYPE_CHECKING``."""
    return _Late(name)


def loaded(name: str) -> ModuleType:
    """Imports a module without garbage collection, which would make it a quarter slower: modules are never
    garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        if enabled:
            gc.enable()
