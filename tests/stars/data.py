"""Facts in partitions of days, and their dimensions, as Parquet files: small, seeded and of our own making.

Sales in shops, sales on the web and what was returned, a directory for each day of two years, as TPC-DS
shapes them; with smaller domains, so that every query has an answer at any scale. Scale 1: two million sales
in shops.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tests.tpch.data import cents, texts

Ints = npt.NDArray[np.int64]

FIRST = dt.date(2023, 1, 1)
DAYS = 730
STATES = ("AL", "CA", "GA", "KY", "MN", "NY", "OH", "TN", "TX", "WA")
CATEGORIES = ("Books", "Electronics", "Home", "Jewelry", "Music", "Shoes", "Sports", "Women")
CLASSES = ("accent", "classical", "fiction", "football", "pop", "portable")
COLOURS = ("azure", "coral", "ivory", "lime", "navy", "plum", "red", "teal")
EDUCATION = ("Primary", "Secondary", "College", "2 yr Degree", "4 yr Degree", "Advanced Degree")
DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
FIRST_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal")


def write(folder: Path, scale: float, every: int = 1, seed: int = 2) -> None:
    """One folder per table below ``folder``; facts in one of its folders for each day, ``every`` so many."""
    made = _Tables(scale, every, np.random.default_rng(seed))
    for name, table in made.dimensions().items():
        (folder / name).mkdir(parents=True)
        pq.write_table(table, folder / name / "part-0.parquet")
    shops = made.shop_sales()
    _write_by_day(folder / "store_sales", "ss_sold_date_sk", shops, made.days)
    _write_by_day(folder / "store_returns", "sr_returned_date_sk", made.returns(shops), made.days)
    _write_by_day(folder / "web_sales", "ws_sold_date_sk", made.web_sales(), made.days)


def _write_by_day(folder: Path, column: str, table: pa.Table, days: int) -> None:
    table = table.sort_by(column)
    borders = np.searchsorted(table.column(column).to_numpy(), np.arange(1, days + 2))
    rows = table.drop_columns([column])
    for day in range(1, days + 1):
        begin, end = borders[day - 1], borders[day]
        if begin < end:
            (folder / f"{column}={day}").mkdir(parents=True)
            pq.write_table(rows.slice(begin, end - begin), folder / f"{column}={day}" / "part-0.parquet")


class _Tables:
    def __init__(self, scale: float, every: int, random: np.random.Generator) -> None:
        self.random = random
        self.every, self.days = every, DAYS // every
        self.sales = max(int(2_000_000 * scale), 20_000)
        self.items = max(int(18_000 * scale), 300)
        self.customers = max(int(100_000 * scale), 500)
        self.addresses = self.customers // 2
        self.shops, self.sites, self.promotions, self.demographics = 40, 12, 100, 480

    def _ints(self, low: int, high: int, rows: int) -> Ints:
        """``low`` to ``high``, both included."""
        return self.random.integers(low, high + 1, rows)

    def _of(self, choices: tuple[str, ...], rows: int) -> pa.Array:
        return pa.array(choices).take(pa.array(self._ints(0, len(choices) - 1, rows)))

    def _some(self, values: Ints, share: float) -> pa.Array:
        """NULL in ``share`` of the rows."""
        return pa.array(values, mask=self.random.random(len(values)) < share)

    def dimensions(self) -> dict[str, pa.Table]:
        return {
            "date_dim": self._dates(),
            "item": self._items(),
            "store": self._shops(),
            "customer": self._customers(),
            "customer_address": self._addresses(),
            "customer_demographics": self._demographics(),
            "promotion": self._promotions(),
            "web_site": pa.table(
                {
                    "web_site_sk": np.arange(1, self.sites + 1),
                    "web_name": texts("site", np.arange(self.sites)),
                }
            ),
        }

    def _dates(self) -> pa.Table:
        dates = [FIRST + dt.timedelta(days=i * self.every) for i in range(self.days)]
        return pa.table(
            {
                "d_date_sk": np.arange(1, self.days + 1),
                "d_date": pa.array(dates, pa.date32()),
                "d_year": pa.array([d.year for d in dates], pa.int32()),
                "d_moy": pa.array([d.month for d in dates], pa.int32()),
                "d_qoy": pa.array([(d.month + 2) // 3 for d in dates], pa.int32()),
                "d_dom": pa.array([d.day for d in dates], pa.int32()),
                "d_week_seq": pa.array([(d - FIRST).days // 7 + 1 for d in dates], pa.int32()),
                "d_day_name": [DAY_NAMES[d.weekday()] for d in dates],
                "d_holiday": pa.array([(d.month, d.day) in ((1, 1), (7, 4), (12, 25)) for d in dates]),
            }
        )

    def _items(self) -> pa.Table:
        keys = np.arange(1, self.items + 1)
        brands = self._ints(1, 60, self.items)
        return pa.table(
            {
                "i_item_sk": keys,
                "i_item_id": texts("item", keys),
                "i_brand_id": pa.array(brands, pa.int32()),
                "i_brand": texts("brand", brands),
                "i_class": self._of(CLASSES, self.items),
                "i_category": self._of(CATEGORIES, self.items),
                "i_manufact_id": pa.array(self._ints(1, 80, self.items), pa.int32()),
                "i_color": self._of(COLOURS, self.items),
                "i_current_price": cents(self._ints(99, 9_999, self.items)),
            }
        )

    def _shops(self) -> pa.Table:
        keys = np.arange(1, self.shops + 1)
        return pa.table(
            {
                "s_store_sk": keys,
                "s_store_name": texts("shop", keys),
                "s_state": pa.array(STATES).take(pa.array(keys % len(STATES))),
                "s_county": texts("county", keys % 7),
                "s_employees": pa.array(self._ints(200, 300, self.shops), pa.int32()),
            }
        )

    def _customers(self) -> pa.Table:
        keys = np.arange(1, self.customers + 1)
        return pa.table(
            {
                "c_customer_sk": keys,
                "c_customer_id": texts("customer", keys),
                "c_first_name": self._of(FIRST_NAMES, self.customers),
                "c_last_name": texts("name", keys % 997),
                "c_birth_year": pa.array(self._ints(1930, 2005, self.customers), pa.int32()),
                "c_addr_sk": self._ints(1, self.addresses, self.customers),
                "c_cdemo_sk": self._some(self._ints(1, self.demographics, self.customers), 0.02),
            }
        )

    def _addresses(self) -> pa.Table:
        keys = np.arange(1, self.addresses + 1)
        return pa.table(
            {
                "ca_address_sk": keys,
                "ca_state": self._of(STATES, self.addresses),
                "ca_county": texts("county", keys % 50),
                "ca_zip": texts("", keys % 9_000 + 10_000),
            }
        )

    def _demographics(self) -> pa.Table:
        keys = np.arange(self.demographics)
        return pa.table(
            {
                "cd_demo_sk": keys + 1,
                "cd_gender": pa.array(["M", "F"]).take(pa.array(keys % 2)),
                "cd_marital_status": pa.array(["S", "M", "D", "W"]).take(pa.array(keys // 2 % 4)),
                "cd_education": pa.array(EDUCATION).take(pa.array(keys // 8 % len(EDUCATION))),
            }
        )

    def _promotions(self) -> pa.Table:
        yes_or_no = ("Y", "N", "N")
        return pa.table(
            {
                "p_promo_sk": np.arange(1, self.promotions + 1),
                "p_email": self._of(yes_or_no, self.promotions),
                "p_event": self._of(yes_or_no, self.promotions),
                "p_tv": self._of(yes_or_no, self.promotions),
            }
        )

    def shop_sales(self) -> pa.Table:
        rows = self.sales
        quantity, price = self._ints(1, 100, rows), self._ints(50, 20_000, rows)
        discount = price * self._ints(0, 40, rows) // 100
        return pa.table(
            {
                "ss_item_sk": self._ints(1, self.items, rows),
                "ss_customer_sk": self._some(self._ints(1, self.customers, rows), 0.03),
                "ss_cdemo_sk": self._some(self._ints(1, self.demographics, rows), 0.03),
                "ss_store_sk": self._some(self._ints(1, self.shops, rows), 0.02),
                "ss_promo_sk": self._some(self._ints(1, self.promotions, rows), 0.5),
                "ss_ticket": np.arange(rows) // 4,
                "ss_quantity": pa.array(quantity, pa.int32()),
                "ss_list_price": cents(price),
                "ss_sales_price": cents(price - discount),
                "ss_ext_sales_price": cents((price - discount) * quantity),
                "ss_coupon_amt": cents(discount),
                "ss_net_profit": cents((price - 2 * discount - 5_000) * quantity),
                "ss_sold_date_sk": self._ints(1, self.days, rows),
            }
        )

    def returns(self, sales: pa.Table) -> pa.Table:
        """Of every eighth sale, up to three months later."""
        sold = sales.take(pa.array(np.arange(0, len(sales), 8)))
        later = sold.column("ss_sold_date_sk").to_numpy() + self._ints(1, 90 // self.every + 1, len(sold))
        quantity = self._ints(1, 20, len(sold))
        return pa.table(
            {
                "sr_item_sk": sold.column("ss_item_sk"),
                "sr_customer_sk": sold.column("ss_customer_sk"),
                "sr_store_sk": sold.column("ss_store_sk"),
                "sr_ticket": sold.column("ss_ticket"),
                "sr_quantity": pa.array(quantity, pa.int32()),
                "sr_return_amt": cents(quantity * 1_250),
                "sr_returned_date_sk": np.minimum(later, self.days),
            }
        )

    def web_sales(self) -> pa.Table:
        rows = self.sales // 3
        quantity, price = self._ints(1, 100, rows), self._ints(50, 20_000, rows)
        return pa.table(
            {
                "ws_item_sk": self._ints(1, self.items, rows),
                "ws_customer_sk": self._some(self._ints(1, self.customers, rows), 0.01),
                "ws_site_sk": self._ints(1, self.sites, rows),
                "ws_order": np.arange(rows) // 3,
                "ws_quantity": pa.array(quantity, pa.int32()),
                "ws_ext_sales_price": cents(price * quantity),
                "ws_net_profit": cents((price - 6_000) * quantity),
                "ws_sold_date_sk": self._ints(1, self.days, rows),
            }
        )
