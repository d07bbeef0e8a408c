"""The changes of two tables, as Debezium writes them: accounts that move between regions, and their orders.

The changes of a row are in one partition, in order. Event time goes on by a second with each message.
Accounts are in the order of time, and orders change while their window is open: no row is ever late, so that
the answer does not depend on how far each topic has been read.
"""

from __future__ import annotations

import datetime
import json
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PARTITIONS = {"accounts": 1, "orders": 2}
LATENESS = 30
"""Seconds: the watermark of orders is so far behind."""
_START = datetime.datetime(2024, 1, 1)
_ACCOUNTS = 12
_YOUNG = 20
"""Seconds after which an order does not change any more."""
_REGIONS = "nesw"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    table: str
    partition: int
    value: str


def changes(count: int, seed: int) -> list[Change]:
    chance = random.Random(seed)
    accounts: list[Row] = []
    orders: list[tuple[int, Row]] = []
    found: list[Change] = []
    for second in range(count):
        at = str(_START + datetime.timedelta(seconds=second))
        orders = [(made, row) for made, row in orders if made > second - _YOUNG]
        deed = chance.random()
        if len(accounts) < _ACCOUNTS:
            accounts.append({"id": len(accounts), "region": chance.choice(_REGIONS), "at": at})
            found.append(_change("accounts", None, accounts[-1]))
        elif deed < 0.15:
            before = chance.choice(accounts)
            after = before | {"region": chance.choice(_REGIONS), "at": at}
            accounts[before["id"]] = after
            found.append(_change("accounts", before, after))
        elif deed < 0.65 or not orders:
            amount, account = chance.randrange(100), chance.randrange(_ACCOUNTS)
            orders.append((second, {"id": second, "account": account, "amount": amount, "at": at}))
            found.append(_change("orders", None, orders[-1][1]))
        else:
            made, before = orders.pop(chance.randrange(len(orders)))
            if deed > 0.9:
                found.append(_change("orders", before, None))
                continue
            moved = {"account": chance.randrange(_ACCOUNTS)} if chance.random() < 0.5 else {}
            orders.append((made, before | moved | {"amount": chance.randrange(100)}))
            found.append(_change("orders", before, orders[-1][1]))
    return found


def ends(made: list[Change]) -> Mapping[str, Mapping[int, int]]:
    """By table and partition, the offset behind its last message."""
    counts = Counter((change.table, change.partition) for change in made)
    return {table: {p: counts[table, p] for p in range(n)} for table, n in PARTITIONS.items()}


def _change(table: str, before: Row | None, after: Row | None) -> Change:
    row = after or before or {}
    op = "d" if after is None else "c" if before is None else "u"
    value = json.dumps({"before": before, "after": after, "op": op})
    return Change(table, row["id"] % PARTITIONS[table], value)
