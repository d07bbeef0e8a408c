"""How functions travel to workers: PySpark's copy of cloudpickle."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pyspark import cloudpickle

_CLOUDPICKLE: Any = cloudpickle


def pickled(value: object) -> bytes:
    """``value`` as it travels; raises whatever stands in its way."""
    data: bytes = _CLOUDPICKLE.dumps(value)
    return data


def send_by_value(module: ModuleType) -> None:
    """From now on functions of ``module`` travel whole: workers need not have the module."""
    _CLOUDPICKLE.register_pickle_by_value(module)


def send_by_name(module: ModuleType) -> None:
    """Takes ``send_by_value`` back."""
    _CLOUDPICKLE.unregister_pickle_by_value(module)


def sent_by_value() -> set[str]:
    """The names of modules that travel whole."""
    return set(_CLOUDPICKLE.list_registry_pickle_by_value())
