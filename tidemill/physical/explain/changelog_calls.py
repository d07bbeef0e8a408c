"""The text of a call of TO_CHANGELOG or FROM_CHANGELOG in plans."""

from __future__ import annotations

from tidemill.physical import nodes as p
from tidemill.physical.explain.printer import Printer
from tidemill.plan import nodes as n

_DEFAULT = "DEFAULT()"
_NO_COLUMNS = Printer(())


def invocation(node: n.ToChangelog | n.FromChangelog | p.ToChangelog | p.FromChangelog) -> str:
    name = "TO_CHANGELOG" if isinstance(node, n.ToChangelog | p.ToChangelog) else "FROM_CHANGELOG"
    call = node.call
    op = f"DESCRIPTOR(_UTF-16LE'{call.op}')" if call.op else _DEFAULT
    mapping = _DEFAULT if call.mapping is None else _NO_COLUMNS.text(call.mapping)
    uid = f"_UTF-16LE'{call.uid}'" if call.uid else _DEFAULT
    return f"{name}(TABLE(#0), {op}, {mapping}, {_DEFAULT}, {uid})"
