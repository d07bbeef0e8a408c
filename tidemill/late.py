"""Modules that are loaded when something of them is first used.

A new session, a SELECT of constants or a SHOW needs less than half of Tidemill's modules. All of them take a
second of processor time to import, most of it to make their classes.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from tidemill.interrupts import put_off


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
    """Imports a module, whole: Ctrl-C is heard after it. Without garbage collection, which would make it a
    quarter slower: modules are never garbage."""
    if name in sys.modules:
        return import_module(name)  # another thread may still be at it
    enabled = gc.isenabled()
    gc.disable()
    try:
        with put_off():
            return import_module(name)
    finally:
        if enabled:
            gc.enable()
