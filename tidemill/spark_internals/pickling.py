"""How functions travel to workers: PySpark's copy of cloudpickle."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from collections.abc import Iterable
from types import ModuleType
from typing import Any
from uuid import uuid4

from pyspark import cloudpickle

_CLOUDPICKLE: Any = cloudpickle
_MOST = 256
"""So many kept values stay in a process. One that was dropped is unpickled again."""


def pickled(value: object) -> bytes:
    """``value`` as it travels; raises whatever stands in its way."""
    data: bytes = _CLOUDPICKLE.dumps(value)
    return data


class Kept:
    """Values that many pickles have and that never change: each is pickled once, when it is met first, and a
    process that gets several of these pickles unpickles it once. So all of these have the same object there.
    """

    def __init__(self, values: Iterable[object]) -> None:
        self._values = {id(value): value for value in values}
        self._reduced: dict[int, tuple[Any, tuple[str, bytes]]] = {}

    def pickled(self, value: object) -> bytes:
        """``value`` as it travels, with what is kept of it."""
        with io.BytesIO() as file:
            _Pickler(file, self).dump(value)
            return file.getvalue()

    def reduced(self, value: object) -> tuple[Any, tuple[str, bytes]] | None:
        """How a pickle names ``value``; None where it is not kept."""
        if id(value) not in self._values:
            return None
        found = self._reduced.get(id(value))
        if found is None:
            found = self._reduced[id(value)] = (_kept, (uuid4().hex, pickled(value)))
        return found


class _Pickler(_CLOUDPICKLE.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, kept: Kept) -> None:
        super().__init__(file)
        self._kept = kept

    def reducer_override(self, obj: object) -> Any:
        kept = self._kept.reduced(obj)
        if kept is None and _is_at_hand(obj if isinstance(obj, type) else type(obj)):
            return NotImplemented  # as pickle does it, which is faster
        return kept or super().reducer_override(obj)


def _is_at_hand(kind: type) -> bool:
    """Whether each worker has this class of Tidemill's under its name."""
    return kind.__module__.startswith("tidemill.") and "<locals>" not in kind.__qualname__


_THERE: OrderedDict[str, object] = OrderedDict()


def _kept(key: str, data: bytes) -> object:
    """The value of this process."""
    if key not in _THERE:
        _THERE[key] = pickle.loads(data)
        if len(_THERE) > _MOST:
            _THERE.popitem(last=False)
    _THERE.move_to_end(key)
    return _THERE[key]


def send_by_value(module: ModuleType) -> None:
    """From now on functions of ``module`` travel whole: workers need not have the module."""
    _CLOUDPICKLE.register_pickle_by_value(module)


def send_by_name(module: ModuleType) -> None:
    """Takes ``send_by_value`` back."""
    _CLOUDPICKLE.unregister_pickle_by_value(module)


def sent_by_value() -> set[str]:
    """The names of modules that travel whole."""
    return set(_CLOUDPICKLE.list_registry_pickle_by_value())
