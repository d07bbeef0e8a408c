"""Loads the compiled core, if there is one for this machine."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from importlib.resources import as_file, files

NAME = "libtidemill_core.so"
SWITCH = "TIDEMILL_COMPILED_CORE"
"""An environment variable: ``off`` makes this process and its workers use NumPy and Arrow alone."""
_VERSION = 2
"""The version of the functions (``native/src/lib.rs``) that this package calls."""


@cache
def library() -> ctypes.CDLL | None:
    """The functions; None if there are none, if they are of another version, or if they are switched off."""
    if os.environ.get(SWITCH, "").lower() == "off":
        return None
    file = files("tidemill.native") / NAME
    if not file.is_file():
        return None
    try:
        with as_file(file) as path:  # workers of a cluster import the package from an archive
            loaded = ctypes.CDLL(str(path))
    except OSError:  # built for another machine
        return None
    return _declared(loaded) if loaded.tidemill_core_version() == _VERSION else None


def _declared(loaded: ctypes.CDLL) -> ctypes.CDLL:
    place, size = ctypes.c_void_p, ctypes.c_size_t
    loaded.tidemill_hash_texts.argtypes = [place, place, size, place]
    loaded.tidemill_hash_texts.restype = None
    byte = ctypes.c_uint8
    loaded.tidemill_count.argtypes = [place, size, byte]
    loaded.tidemill_count.restype = size
    loaded.tidemill_csv.argtypes = [
        place, size, byte, byte, ctypes.c_char_p, size, place, size, size,
    ]  # fmt: skip
    loaded.tidemill_csv.restype = ctypes.c_int64
    loaded.tidemill_json.argtypes = [place, size, place, place, place, size, size]
    loaded.tidemill_json.restype = ctypes.c_int64
    return loaded
