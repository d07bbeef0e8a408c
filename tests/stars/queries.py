"""Thirty queries over facts in partitions of days, as TPC-DS asks them, in Flink's dialect and Spark's."""

from __future__ import annotations

from pathlib import Path

TABLES = {
    "date_dim": "d_date_sk BIGINT, d_date DATE, d_year INT, d_moy INT, d_qoy INT, d_dom INT, d_week_seq INT, "
    "d_day_name STRING, d_holiday BOOLEAN",
    "item": "i_item_sk BIGINT, i_item_id STRING, i_brand_id INT, i_brand STRING, i_class STRING, "
    "i_category STRING, i_manufact_id INT, i_color STRING, i_current_price DECIMAL(15, 2)",
    "store": "s_store_sk BIGINT, s_store_name STRING, s_state STRING, s_county STRING, s_employees INT",
    "customer": "c_customer_sk BIGINT, c_customer_id STRING, c_first_name STRING, c_last_name STRING, "
    "c_birth_year INT, c_addr_sk BIGINT, c_cdemo_sk BIGINT",
    "customer_address": "ca_address_sk BIGINT, ca_state STRING, ca_county STRING, ca_zip STRING",
    "customer_demographics": "cd_demo_sk BIGINT, cd_gender STRING, cd_marital_status STRING, "
    "cd_education STRING",
    "promotion": "p_promo_sk BIGINT, p_email STRING, p_event STRING, p_tv STRING",
    "web_site": "web_site_sk BIGINT, web_name STRING",
    "store_sales": "ss_item_sk BIGINT, ss_customer_sk BIGINT, ss_cdemo_sk BIGINT, ss_store_sk BIGINT, "
    "ss_promo_sk BIGINT, ss_ticket BIGINT, ss_quantity INT, ss_list_price DECIMAL(15, 2), "
    "ss_sales_price DECIMAL(15, 2), ss_ext_sales_price DECIMAL(15, 2), ss_coupon_amt DECIMAL(15, 2), "
    "ss_net_profit DECIMAL(15, 2), ss_sold_date_sk INT",
    "store_returns": "sr_item_sk BIGINT, sr_customer_sk BIGINT, sr_store_sk BIGINT, sr_ticket BIGINT, "
    "sr_quantity INT, sr_return_amt DECIMAL(15, 2), sr_returned_date_sk INT",
    "web_sales": "ws_item_sk BIGINT, ws_customer_sk BIGINT, ws_site_sk BIGINT, ws_order BIGINT, "
    "ws_quantity INT, ws_ext_sales_price DECIMAL(15, 2), ws_net_profit DECIMAL(15, 2), ws_sold_date_sk INT",
}
FACTS = {
    "store_sales": "ss_sold_date_sk",
    "store_returns": "sr_returned_date_sk",
    "web_sales": "ws_sold_date_sk",
}
"""By table the column of its partitions."""


def create_tables(folder: Path) -> list[str]:
    return [
        f"CREATE TABLE {name} ({columns}) "
        + (f"PARTITIONED BY ({FACTS[name]}) " if name in FACTS else "")
        + f"WITH ('connector' = 'filesystem', 'path' = '{folder}/{name}', 'format' = 'parquet')"
        for name, columns in TABLES.items()
    ]


_SHOPS = "store_sales JOIN date_dim ON ss_sold_date_sk = d_date_sk"
_WEB = "web_sales JOIN date_dim ON ws_sold_date_sk = d_date_sk"

QUERIES: dict[str, str] = {
    "brands_of_a_month": f"""
        SELECT d_year, i_brand_id, i_brand, SUM(ss_ext_sales_price) AS price
        FROM {_SHOPS} JOIN item ON ss_item_sk = i_item_sk
        WHERE i_manufact_id < 20 AND d_moy = 11
        GROUP BY d_year, i_brand_id, i_brand ORDER BY d_year, price DESC, i_brand_id LIMIT 100""",
    "averages_by_demographics": f"""
        SELECT i_item_id, AVG(CAST(ss_quantity AS DECIMAL(10, 2))) AS quantity,
          AVG(ss_list_price) AS list_price,
          AVG(ss_coupon_amt) AS coupon, AVG(ss_sales_price) AS price
        FROM {_SHOPS} JOIN item ON ss_item_sk = i_item_sk
          JOIN customer_demographics ON ss_cdemo_sk = cd_demo_sk JOIN promotion ON ss_promo_sk = p_promo_sk
        WHERE cd_gender = 'M' AND cd_marital_status = 'S' AND cd_education = 'College'
          AND (p_email = 'N' OR p_event = 'N') AND d_year = 2023
        GROUP BY i_item_id ORDER BY i_item_id LIMIT 100""",
    "brands_across_states": f"""
        SELECT i_brand_id, i_brand, i_manufact_id, SUM(ss_ext_sales_price) AS price
        FROM {_SHOPS} JOIN item ON ss_item_sk = i_item_sk JOIN customer ON ss_customer_sk = c_customer_sk
          JOIN customer_address ON c_addr_sk = ca_address_sk JOIN store ON ss_store_sk = s_store_sk
        WHERE i_class = 'pop' AND d_moy = 11 AND d_year = 2023 AND ca_state <> s_state
        GROUP BY i_brand_id, i_brand, i_manufact_id
        ORDER BY price DESC, i_brand_id, i_manufact_id LIMIT 100""",
    "days_of_the_week": f"""
        SELECT s_store_name, SUM(CASE WHEN d_day_name = 'Sunday' THEN ss_sales_price END) AS on_sunday,
          SUM(CASE WHEN d_day_name = 'Monday' THEN ss_sales_price END) AS on_monday,
          SUM(CASE WHEN d_day_name = 'Friday' THEN ss_sales_price END) AS on_friday,
          SUM(CASE WHEN d_day_name = 'Saturday' THEN ss_sales_price END) AS on_saturday
        FROM {_SHOPS} JOIN store ON ss_store_sk = s_store_sk WHERE d_year = 2024
        GROUP BY s_store_name ORDER BY s_store_name""",
    "returned_more_than_usual": """
        WITH returned AS (
          SELECT sr_customer_sk AS customer_sk, sr_store_sk AS store_sk, SUM(sr_return_amt) AS total
          FROM store_returns, date_dim WHERE sr_returned_date_sk = d_date_sk AND d_year = 2024
          GROUP BY sr_customer_sk, sr_store_sk)
        SELECT c_customer_id FROM returned r1, store, customer
        WHERE r1.total > (SELECT AVG(r2.total) * 1.2 FROM returned r2 WHERE r1.store_sk = r2.store_sk)
          AND s_store_sk = r1.store_sk AND s_state = 'TN' AND r1.customer_sk = c_customer_sk
        ORDER BY c_customer_id LIMIT 100""",
    "pricey_items_by_state": f"""
        SELECT ca_state, COUNT(*) AS cnt
        FROM {_SHOPS} JOIN customer ON ss_customer_sk = c_customer_sk
          JOIN customer_address ON c_addr_sk = ca_address_sk JOIN item i ON ss_item_sk = i_item_sk
        WHERE d_year = 2024 AND d_moy = 1 AND i_current_price > (
          SELECT 1.2 * AVG(j.i_current_price) FROM item j WHERE j.i_category = i.i_category)
        GROUP BY ca_state HAVING COUNT(*) >= 10 ORDER BY cnt, ca_state""",
    "share_within_class": f"""
        SELECT i_item_id, i_category, i_class, revenue,
          revenue * 100 / SUM(revenue) OVER (PARTITION BY i_class) AS ratio
        FROM (
          SELECT i_item_id, i_category, i_class, SUM(ss_ext_sales_price) AS revenue
          FROM {_SHOPS} JOIN item ON ss_item_sk = i_item_sk
          WHERE i_category IN ('Sports', 'Books', 'Home')
            AND d_date BETWEEN DATE '2023-02-22' AND DATE '2023-03-24'
          GROUP BY i_item_id, i_category, i_class) AS t
        ORDER BY i_category, i_class, i_item_id, ratio LIMIT 100""",
    "bands_of_quantity": """
        SELECT
          (SELECT AVG(ss_ext_sales_price) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20) AS less,
          (SELECT AVG(ss_net_profit) FROM store_sales WHERE ss_quantity BETWEEN 21 AND 40) AS more,
          (SELECT AVG(ss_ext_sales_price) FROM store_sales WHERE ss_quantity BETWEEN 41 AND 60) AS most
        FROM store WHERE s_store_sk = 1""",
    "customers_of_both": """
        SELECT COUNT(*) AS cnt FROM (
          SELECT c_last_name, c_first_name, d_date FROM store_sales, date_dim, customer
          WHERE ss_sold_date_sk = d_date_sk AND ss_customer_sk = c_customer_sk AND d_moy BETWEEN 1 AND 3
          INTERSECT
          SELECT c_last_name, c_first_name, d_date FROM web_sales, date_dim, customer
          WHERE ws_sold_date_sk = d_date_sk AND ws_customer_sk = c_customer_sk
            AND d_moy BETWEEN 1 AND 3) AS t""",
    "customers_of_shops_only": """
        SELECT COUNT(*) AS cnt FROM (
          SELECT c_customer_id FROM store_sales, date_dim, customer
          WHERE ss_sold_date_sk = d_date_sk AND ss_customer_sk = c_customer_sk AND d_year = 2024 AND d_moy = 2
          EXCEPT
          SELECT c_customer_id FROM web_sales, date_dim, customer
          WHERE ws_sold_date_sk = d_date_sk AND ws_customer_sk = c_customer_sk AND d_year = 2024) AS t""",
    "both_channels_together": f"""
        SELECT i_manufact_id, SUM(price) AS total FROM (
          SELECT i_manufact_id, ss_ext_sales_price AS price FROM {_SHOPS} JOIN item ON ss_item_sk = i_item_sk
          WHERE i_category = 'Books' AND d_year = 2023 AND d_moy = 3
          UNION ALL
          SELECT i_manufact_id, ws_ext_sales_price FROM {_WEB} JOIN item ON ws_item_sk = i_item_sk
          WHERE i_category = 'Books' AND d_year = 2023 AND d_moy = 3) AS t
        GROUP BY i_manufact_id ORDER BY total, i_manufact_id LIMIT 100""",
    "rollup_of_categories": f"""
        SELECT i_category, i_class, i_brand, SUM(ss_sales_price * ss_quantity) AS total
        FROM {_SHOPS} JOIN item ON ss_item_sk = i_item_sk WHERE d_year = 2023 AND d_qoy = 2
        GROUP BY ROLLUP (i_category, i_class, i_brand)
        ORDER BY i_category, i_class, i_brand LIMIT 100""",
    "best_items_of_a_category": f"""
        SELECT i_category, i_item_id, revenue, place FROM (
          SELECT i_category, i_item_id, revenue,
            RANK() OVER (PARTITION BY i_category ORDER BY revenue DESC) AS place
          FROM (
            SELECT i_category, i_item_id, SUM(ss_net_profit) AS revenue
            FROM {_SHOPS} JOIN item ON ss_item_sk = i_item_sk WHERE d_year = 2024
            GROUP BY i_category, i_item_id) AS t) AS ranked
        WHERE place <= 5 ORDER BY i_category, place, i_item_id""",
    "bought_in_two_channels": f"""
        SELECT c_birth_year, COUNT(*) AS cnt FROM customer
        WHERE EXISTS (SELECT 1 FROM {_SHOPS}
            WHERE ss_customer_sk = c_customer_sk AND d_year = 2024 AND d_moy = 4)
          AND EXISTS (SELECT 1 FROM {_WEB}
            WHERE ws_customer_sk = c_customer_sk AND d_year = 2024 AND d_moy = 4)
        GROUP BY c_birth_year ORDER BY c_birth_year""",
    "bought_but_not_on_the_web": f"""
        SELECT cd_gender, cd_education, COUNT(*) AS cnt
        FROM customer JOIN customer_demographics ON c_cdemo_sk = cd_demo_sk
        WHERE EXISTS (SELECT 1 FROM {_SHOPS}
            WHERE ss_customer_sk = c_customer_sk AND d_year = 2023 AND d_qoy = 1)
          AND NOT EXISTS (
            SELECT 1 FROM {_WEB} WHERE ws_customer_sk = c_customer_sk AND d_year = 2023 AND d_qoy = 1)
        GROUP BY cd_gender, cd_education ORDER BY cd_gender, cd_education""",
    "never_on_holidays": f"""
        SELECT i_category, COUNT(*) AS cnt FROM item
        WHERE i_item_sk NOT IN (SELECT ss_item_sk FROM {_SHOPS} WHERE d_holiday)
        GROUP BY i_category ORDER BY i_category""",
    "sold_on_holidays": f"""
        SELECT i_color, COUNT(*) AS cnt FROM item
        WHERE i_item_sk IN (SELECT ws_item_sk FROM {_WEB} WHERE d_holiday)
        GROUP BY i_color ORDER BY i_color""",
    "dates_of_a_subquery": """
        SELECT i_class, SUM(ss_quantity) AS sold FROM store_sales, item
        WHERE ss_item_sk = i_item_sk
          AND ss_sold_date_sk IN (SELECT d_date_sk FROM date_dim WHERE d_year = 2024 AND d_moy = 12)
        GROUP BY i_class ORDER BY i_class""",
    "returned_what_was_sold": """
        SELECT s_state, COUNT(DISTINCT ss_ticket) AS tickets, SUM(sr_return_amt) AS amount
        FROM store_sales, store_returns, date_dim d1, date_dim d2, store
        WHERE ss_ticket = sr_ticket AND ss_item_sk = sr_item_sk AND ss_sold_date_sk = d1.d_date_sk
          AND sr_returned_date_sk = d2.d_date_sk AND d1.d_year = 2023 AND d1.d_moy = 4 AND d2.d_year = 2023
          AND d2.d_moy BETWEEN 4 AND 7 AND ss_store_sk = s_store_sk
        GROUP BY s_state ORDER BY s_state""",
    "sold_and_returned_by_day": """
        SELECT COALESCE(s.a_day, r.a_day) AS dom, sold, returned FROM (
          SELECT d_dom AS a_day, SUM(ss_quantity) AS sold FROM store_sales, date_dim
          WHERE ss_sold_date_sk = d_date_sk AND d_year = 2024 AND d_moy = 5 GROUP BY d_dom) AS s
        FULL OUTER JOIN (
          SELECT d_dom AS a_day, SUM(sr_quantity) AS returned FROM store_returns, date_dim
          WHERE sr_returned_date_sk = d_date_sk AND d_year = 2024 AND d_moy = 6 GROUP BY d_dom) AS r
        ON s.a_day = r.a_day ORDER BY dom""",
    "year_over_year": """
        WITH weekly AS (
          SELECT d_week_seq, d_year, SUM(ws_ext_sales_price) AS price FROM web_sales, date_dim
          WHERE ws_sold_date_sk = d_date_sk GROUP BY d_week_seq, d_year)
        SELECT a.d_week_seq, a.price, b.price / a.price AS ratio FROM weekly a JOIN weekly b
          ON a.d_week_seq = b.d_week_seq - 52
        WHERE a.d_year = 2023 AND b.d_year = 2024 ORDER BY a.d_week_seq""",
    "shops_and_months": f"""
        SELECT s_county, d_moy, COUNT(*) AS cnt, SUM(ss_net_profit) AS profit
        FROM {_SHOPS} JOIN store ON ss_store_sk = s_store_sk
        WHERE d_year = 2024 AND d_qoy IN (1, 4) AND s_employees > 250
        GROUP BY s_county, d_moy ORDER BY s_county, d_moy""",
    "large_baskets": f"""
        SELECT c_last_name, c_first_name, ss_ticket, cnt FROM (
          SELECT ss_ticket, ss_customer_sk, COUNT(*) AS cnt FROM {_SHOPS}
          WHERE d_dom BETWEEN 1 AND 3 AND d_year = 2023 GROUP BY ss_ticket, ss_customer_sk) AS baskets
          JOIN customer ON ss_customer_sk = c_customer_sk
        ORDER BY cnt DESC, ss_ticket, c_last_name, c_first_name LIMIT 100""",
    "one_day": """
        SELECT i_category, SUM(ss_ext_sales_price) AS price
        FROM store_sales JOIN item ON ss_item_sk = i_item_sk
        WHERE ss_sold_date_sk = 40 GROUP BY i_category ORDER BY i_category""",
    "days_of_a_range": """
        SELECT ws_site_sk, COUNT(*) AS cnt, MAX(ws_net_profit) AS best FROM web_sales
        WHERE ws_sold_date_sk BETWEEN 20 AND 50 GROUP BY ws_site_sk ORDER BY ws_site_sk""",
    "customers_without_sales": f"""
        SELECT ca_state, COUNT(*) AS cnt, COUNT(bought.ws_customer_sk) AS buyers
        FROM customer JOIN customer_address ON c_addr_sk = ca_address_sk
          LEFT JOIN (SELECT DISTINCT ws_customer_sk FROM {_WEB} WHERE d_year = 2024 AND d_qoy = 3) AS bought
          ON c_customer_sk = bought.ws_customer_sk
        GROUP BY ca_state ORDER BY ca_state""",
    "promoted_share": f"""
        SELECT d_moy, SUM(CASE WHEN p_tv = 'Y' THEN ss_ext_sales_price ELSE 0 END) AS promoted,
          SUM(ss_ext_sales_price) AS total
        FROM {_SHOPS} LEFT JOIN promotion ON ss_promo_sk = p_promo_sk
        WHERE d_year = 2023 GROUP BY d_moy ORDER BY d_moy""",
    "distinct_customers": f"""
        SELECT d_qoy, COUNT(DISTINCT ss_customer_sk) AS customers, COUNT(DISTINCT ss_item_sk) AS items
        FROM {_SHOPS} WHERE d_year = 2024 GROUP BY d_qoy ORDER BY d_qoy""",
    "running_total": """
        SELECT d_date, price, SUM(price) OVER (ORDER BY d_date) AS so_far FROM (
          SELECT d_date, SUM(ws_ext_sales_price) AS price FROM web_sales, date_dim
          WHERE ws_sold_date_sk = d_date_sk AND d_year = 2023 GROUP BY d_date) AS t
        ORDER BY d_date LIMIT 100""",
    "sites_above_the_mean": f"""
        SELECT web_name, SUM(ws_net_profit) AS profit
        FROM {_WEB} JOIN web_site ON ws_site_sk = web_site_sk WHERE d_year = 2024 AND d_moy BETWEEN 6 AND 8
        GROUP BY web_name HAVING SUM(ws_net_profit) > (
          SELECT SUM(ws_net_profit) / 12 FROM web_sales, date_dim
          WHERE ws_sold_date_sk = d_date_sk AND d_year = 2024 AND d_moy BETWEEN 6 AND 8)
        ORDER BY profit DESC, web_name""",
}
