"""A job over two tables of changes, and what it must give: orders joined with their customers, by city."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from tests import visible

Row = dict[str, object]

SCRIPT = """
CREATE TABLE customers (id INT, city STRING, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'filesystem', 'path' = '{place}/customers', 'format' = 'debezium-json');
CREATE TABLE orders (id INT, customer INT, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'filesystem', 'path' = '{place}/orders', 'format' = 'debezium-json');
CREATE TABLE totals (city STRING, orders BIGINT, amount BIGINT, largest BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '{place}/totals', 'format' = 'debezium-json');
INSERT INTO totals
  SELECT c.city, COUNT(*), SUM(o.amount), MAX(o.amount)
  FROM orders AS o JOIN customers AS c ON o.customer = c.id GROUP BY c.city;
"""


def write_changes(folder: Path, *, changes: int, seed: int = 1) -> dict[str, tuple[int, int, int]]:
    """Writes the script and the two tables' changes; what ``totals`` must add up to."""
    chance = random.Random(seed)
    customers = _changes(chance, changes // 4, lambda key: {"id": key, "city": f"city {chance.randrange(9)}"})
    orders = _changes(
        chance,
        changes,
        lambda key: {
            "id": key,
            "customer": chance.randrange(changes // 8),
            "amount": chance.randrange(10**6),
        },
    )
    for name, (lines, _) in {"customers": customers, "orders": orders}.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "changes.json").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return _totals(customers[1], orders[1])


def _changes(
    chance: random.Random, count: int, made: Callable[[int], Row]
) -> tuple[list[Row], dict[int, Row]]:
    """Messages as Debezium sends them, and the rows that are left."""
    rows: dict[int, Row] = {}
    lines: list[Row] = []
    for _ in range(count):
        key = chance.randrange(count // 2)
        before = rows.pop(key, None)
        goes = before is not None and chance.random() < 0.3
        after: Row | None = None if goes else made(key)
        if after is not None:
            rows[key] = after
        op = "d" if after is None else "c" if before is None else "u"
        lines.append({"before": before, "after": after, "op": op})
    return lines, rows


def _totals(customers: dict[int, Row], orders: dict[int, Row]) -> dict[str, tuple[int, int, int]]:
    amounts: dict[str, list[int]] = defaultdict(list)
    for order in orders.values():
        customer = customers.get(int(str(order["customer"])))
        if customer is not None:
            amounts[str(customer["city"])].append(int(str(order["amount"])))
    return {city: (len(found), sum(found), max(found)) for city, found in amounts.items()}


def totals(changes: list[str]) -> dict[str, tuple[int, int, int]]:
    """What the lines of ``totals`` add up to."""
    found = visible.added_up(changes, "city", "orders", "amount", "largest")
    assert set(found.values()) <= {1}
    return {str(city): (orders, amount, largest) for city, orders, amount, largest in found}
