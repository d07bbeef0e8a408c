"""The protocol's structs, made of ``protocol.thrift`` when first asked for: ``structs().TStatus``."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import thriftpy2

_SOURCE = Path(__file__).with_name("protocol.thrift")


@cache
def structs() -> Any:
    """A module with a class for each struct and enum."""
    return thriftpy2.load(str(_SOURCE), module_name="tidemill_hiveserver2_thrift")


def call_structs(method: str) -> tuple[type[Any], type[Any]] | None:
    """The request and the response of a method; None for one that the protocol does not have."""
    found = structs()
    if method not in found.TCLIService.thrift_services:
        return None
    arguments = getattr(found.TCLIService, f"{method}_args").thrift_spec
    result = getattr(found.TCLIService, f"{method}_result").thrift_spec
    return arguments[1][2], result[0][2]
