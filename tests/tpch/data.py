"""The eight tables of TPC-H as Parquet files, small, seeded and of our own making.

The shape of dbgen's data (keys, foreign keys, value domains), not its values: domains that queries filter
by are smaller, so that every query has an answer at a scale at which it takes a moment.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Ints = npt.NDArray[np.int64]

NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0),
    ("FRANCE", 3), ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2),
    ("JORDAN", 4), ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2),
    ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
)  # fmt: skip
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
SEGMENTS = ("AUTOMOBILE", "BUILDING", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
MODES = ("AIR", "AIR REG", "MAIL", "RAIL", "SHIP", "TRUCK")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE")
TYPES = ("STANDARD BRASS", "PROMO STEEL", "ECONOMY ANODIZED STEEL", "MEDIUM POLISHED TIN", "PROMO BRASS")
CONTAINERS = ("SM CASE", "SM BOX", "MED BAG", "MED BOX", "LG CASE", "LG BOX")
COLOURS = ("forest", "green", "almond", "azure", "blue", "ivory")
BRANDS = ("Brand#12", "Brand#23", "Brand#34", "Brand#45")
COMMENTS = ("quick deposits", "special packages requests", "Customer of many Complaints", "even ideas", "")
FIRST, LAST_ORDER = dt.date(1992, 1, 1), dt.date(1998, 8, 2)
FLAG_DAY = np.datetime64("1995-06-17")


def write(folder: Path, scale: float, seed: int = 1) -> None:
    """One folder per table below ``folder``, its rows in two files (large tables)."""
    made = _Tables(scale, np.random.default_rng(seed))
    for name, table in made.all().items():
        parts = 2 if len(table) > 1000 else 1
        size = -(-len(table) // parts)
        (folder / name).mkdir(parents=True)
        for i in range(parts):
            pq.write_table(table.slice(i * size, size), folder / name / f"part-{i}.parquet")


class _Tables:
    """``scale`` 1 is a gigabyte, as TPC-H counts."""

    def __init__(self, scale: float, random: np.random.Generator) -> None:
        self.random = random
        self.suppliers = max(int(10_000 * scale), 20)
        self.parts = max(int(200_000 * scale), 40)
        self.customers = max(int(150_000 * scale), 30)
        self.orders = self.customers * 10

    def all(self) -> dict[str, pa.Table]:
        nations = pa.table(
            {
                "n_nationkey": pa.array(range(len(NATIONS)), pa.int64()),
                "n_name": [name for name, _ in NATIONS],
                "n_regionkey": pa.array([region for _, region in NATIONS], pa.int64()),
            }
        )
        regions = pa.table(
            {"r_regionkey": pa.array(range(len(REGIONS)), pa.int64()), "r_name": list(REGIONS)}
        )
        orders, lines = self._orders()
        return {
            "nation": nations,
            "region": regions,
            "supplier": self._suppliers(),
            "part": self._parts(),
            "partsupp": self._offers(),
            "customer": self._customers(),
            "orders": orders,
            "lineitem": lines,
        }

    # -- columns ------------------------------------------------------------------------------------

    def _ints(self, low: int, high: int, rows: int) -> Ints:
        """``low`` to ``high``, both included."""
        return self.random.integers(low, high + 1, rows)

    def _of(self, choices: tuple[str, ...], rows: int) -> pa.Array:
        return pa.array(choices).take(pa.array(self._ints(0, len(choices) - 1, rows)))

    def _cents(self, low: int, high: int, rows: int) -> pa.Array:
        return cents(self._ints(low, high, rows))

    def _suppliers(self) -> pa.Table:
        keys = np.arange(1, self.suppliers + 1)
        nations = self._ints(0, 24, self.suppliers)
        return pa.table(
            {
                "s_suppkey": keys,
                "s_name": texts("Supplier#", keys),
                "s_address": texts("address ", keys),
                "s_nationkey": nations,
                "s_phone": phones(nations, keys),
                "s_acctbal": self._cents(-99_999, 999_999, self.suppliers),
                "s_comment": self._of(COMMENTS, self.suppliers),
            }
        )

    def _parts(self) -> pa.Table:
        keys = np.arange(1, self.parts + 1)
        names = [self._of(COLOURS, self.parts).to_pylist() for _ in range(2)]
        return pa.table(
            {
                "p_partkey": keys,
                "p_name": [f"{a} {b}" for a, b in zip(*names, strict=True)],
                "p_mfgr": texts("Manufacturer#", keys % 5 + 1),
                "p_brand": self._of(BRANDS, self.parts),
                "p_type": self._of(TYPES, self.parts),
                "p_size": pa.array(self._ints(1, 20, self.parts), pa.int32()),
                "p_container": self._of(CONTAINERS, self.parts),
                "p_retailprice": cents(90_000 + keys % 1000 * 100),
            }
        )

    def _offered(self, parts: Ints, number: Ints) -> Ints:
        """The supplier of each part's offer ``number`` (0 to 3)."""
        return (parts + number * (self.suppliers // 4 + 1)) % self.suppliers + 1

    def _offers(self) -> pa.Table:
        parts = np.repeat(np.arange(1, self.parts + 1), 4)
        rows = len(parts)
        return pa.table(
            {
                "ps_partkey": parts,
                "ps_suppkey": self._offered(parts, np.tile(np.arange(4), self.parts)),
                "ps_availqty": pa.array(self._ints(1, 9999, rows), pa.int32()),
                "ps_supplycost": self._cents(100, 100_000, rows),
            }
        )

    def _customers(self) -> pa.Table:
        keys = np.arange(1, self.customers + 1)
        nations = self._ints(0, 24, self.customers)
        return pa.table(
            {
                "c_custkey": keys,
                "c_name": texts("Customer#", keys),
                "c_address": texts("address ", keys),
                "c_nationkey": nations,
                "c_phone": phones(nations, keys),
                "c_acctbal": self._cents(-99_999, 999_999, self.customers),
                "c_mktsegment": self._of(SEGMENTS, self.customers),
                "c_comment": self._of(COMMENTS, self.customers),
            }
        )

    def _orders(self) -> tuple[pa.Table, pa.Table]:
        rows = self.orders
        keys = np.arange(1, rows + 1)
        # A third of the customers never order.
        buyers = self._ints(1, self.customers * 2 // 3, rows)
        days = self._ints(0, (LAST_ORDER - FIRST).days, rows)
        dates = np.datetime64(FIRST) + days.astype("timedelta64[D]")
        counts = self._ints(1, 7, rows)
        lines, prices = self._lines(np.repeat(keys, counts), np.repeat(dates, counts), counts)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        orders = pa.table(
            {
                "o_orderkey": keys,
                "o_custkey": buyers,
                "o_orderstatus": pa.array(["O", "F", "P"]).take(pa.array(self._ints(0, 2, rows))),
                "o_totalprice": cents(np.add.reduceat(prices, starts)),
                "o_orderdate": pa.array(dates),
                "o_orderpriority": self._of(PRIORITIES, rows),
                "o_shippriority": pa.array(np.zeros(rows), pa.int32()),
                "o_comment": self._of(COMMENTS, rows),
            }
        )
        return orders, lines

    def _lines(self, orders: Ints, dates: npt.NDArray[np.datetime64], counts: Ints) -> tuple[pa.Table, Ints]:
        rows = len(orders)
        parts = self._ints(1, self.parts, rows)
        quantity = self._ints(1, 50, rows)
        prices = quantity * (90_000 + parts % 1000 * 100)

        def later(than: npt.NDArray[np.datetime64], most: int) -> npt.NDArray[np.datetime64]:
            days: npt.NDArray[np.timedelta64] = self._ints(1, most, rows).astype("timedelta64[D]")
            return np.add(than, days)

        shipped = later(dates, 121)
        received = later(shipped, 30)
        numbers = np.concatenate([np.arange(1, n + 1) for n in counts])
        lines = pa.table(
            {
                "l_orderkey": orders,
                "l_partkey": parts,
                "l_suppkey": self._offered(parts, self._ints(0, 3, rows)),
                "l_linenumber": pa.array(numbers, pa.int32()),
                "l_quantity": cents(quantity * 100),
                "l_extendedprice": cents(prices),
                "l_discount": self._cents(0, 10, rows),
                "l_tax": self._cents(0, 8, rows),
                "l_returnflag": pa.array(np.where(received <= FLAG_DAY, "R", "N")),
                "l_linestatus": pa.array(np.where(shipped > FLAG_DAY, "O", "F")),
                "l_shipdate": pa.array(shipped),
                "l_commitdate": pa.array(later(dates, 90)),
                "l_receiptdate": pa.array(received),
                "l_shipinstruct": self._of(INSTRUCTIONS, rows),
                "l_shipmode": self._of(MODES, rows),
            }
        )
        return lines, prices


def cents(values: Ints) -> pa.Array:
    """DECIMAL(15, 2) from hundredths."""
    low = np.empty((len(values), 2), np.int64)
    low[:, 0], low[:, 1] = values, values >> 63
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(values), [None, pa.py_buffer(low.tobytes())])


def texts(prefix: str, keys: Ints) -> list[str]:
    return [f"{prefix}{key:09d}" for key in keys.tolist()]


def phones(nations: Ints, keys: Ints) -> list[str]:
    """The country's code first, as TPC-H has it."""
    return [f"{n + 10}-{k % 900 + 100}-555" for n, k in zip(nations.tolist(), keys.tolist(), strict=True)]
