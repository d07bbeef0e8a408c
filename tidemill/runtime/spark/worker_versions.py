"""Runs in a worker's Python, whatever that is: says what there is, without anything of ours being there.

Sent by value (see ``workers``): it must use the standard library alone.
"""

from __future__ import annotations

import platform
import socket
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module

LIBRARIES = ("pyarrow", "numpy", "xxhash", "pyspark")
OWN = "tidemill"
MISSING = "missing: "


def versions(_: Iterable[object]) -> Iterator[dict[str, str]]:
    """Of Python and each library; of our own package the file it comes from."""
    found = {"host": socket.gethostname(), "program": sys.executable, "python": platform.python_version()}
    yield found | {name: version(name) for name in (*LIBRARIES, OWN)}


def version(name: str) -> str:
    try:
        module = import_module(name)
    except ImportError as e:
        return f"{MISSING}{e}"
    if name == OWN:
        return str(module.__file__)
    return str(getattr(module, "__version__", None) or module.VERSION)
