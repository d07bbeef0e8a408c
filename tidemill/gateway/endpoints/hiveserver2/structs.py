"""The protocol's structs, loaded from ``protocol.thrift`` on first use: ``structs().TStatus``."""

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
    """The request and response types of a method; None if the protocol lacks the method."""
    thrift = structs()
    if method not in thrift.TCLIService.thrift_services:
        return None
    arguments = getattr(thrift.TCLIService, f"{method}_args").thrift_spec
    result = getattr(thrift.TCLIService, f"{method}_result").thrift_spec
    return arguments[1][2], result[0][2]
