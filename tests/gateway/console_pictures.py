"""Takes pictures of the console at work into docs/images: ``python -m tests.gateway.console_pictures``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.gateway.browser import CONTROL, MISSING, Browser, Page, browser, found_browser
from tidemill.config.option import Configuration
from tidemill.gateway.endpoints.rest.endpoint import RestEndpoint
from tidemill.gateway.start import GatewayProcess
from tidemill.runtime.spark.session import spark_application

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
TABLES = """CREATE TEMPORARY TABLE visits (
  visitor INT, page INT, spent DECIMAL(6, 2), seen TIMESTAMP(3),
  WATERMARK FOR seen AS seen - INTERVAL '2' SECOND
) WITH ('connector' = 'datagen', 'rows-per-second' = '120', 'fields.visitor.min' = '1',
  'fields.visitor.max' = '5000', 'fields.page.min' = '0', 'fields.page.max' = '27',
  'fields.spent.min' = '0', 'fields.spent.max' = '99', 'fields.seen.max-past' = '1000');
CREATE TEMPORARY TABLE minutes (page STRING, since TIMESTAMP(3), visitors BIGINT, spent DECIMAL(38, 2))
WITH ('connector' = 'blackhole');
CREATE TEMPORARY VIEW named AS SELECT visitor, spent, seen, CASE
  WHEN page < 10 THEN 'home' WHEN page < 16 THEN 'search' WHEN page < 21 THEN 'cart'
  WHEN page < 24 THEN 'checkout' WHEN page < 26 THEN 'help' ELSE 'account' END AS page
FROM visits;"""
JOB = """INSERT INTO minutes
SELECT page, window_start, COUNT(DISTINCT visitor), SUM(spent)
FROM TUMBLE(TABLE named, DESCRIPTOR(seen), INTERVAL '5' SECOND)
GROUP BY page, window_start, window_end;"""
QUERY = """-- who looks at what, as it happens
SELECT page, COUNT(*) AS visits, COUNT(DISTINCT visitor) AS visitors, SUM(spent) AS spent
FROM named
GROUP BY page;"""
EPOCHS = 8


def main() -> int:
    program = found_browser()
    if program is None:
        sys.stderr.write(f"{MISSING}\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        config = Configuration(
            {"tidemill.gateway.directory": f"{folder}/gateway", "table.exec.mini-batch.allow-latency": "1 s"}
        )
        spark_application(config)
        house = GatewayProcess(config)
        house.start()
        endpoint = RestEndpoint(house.gateway, Configuration({"sql-gateway.endpoint.rest.port": "0"}))
        endpoint.start()
        try:
            with browser(program, Path(folder) / "browser") as found:
                take(found, f"{endpoint.address}/console/")
        finally:
            endpoint.stop()
            house.close()
    return 0


def take(found: Browser, address: str) -> None:
    page = found.page()
    page.theme("light")
    page.resize(1180, 760)
    page.go(address)
    run(page, f"{TABLES}\n{JOB}")
    page.wait("document.querySelector('.messages .said a')")
    job = page.ask("document.querySelector('.messages .said a').hash")
    run(page, QUERY)
    page.wait("document.querySelectorAll('.grid tbody tr:not(.gap)').length === 6")
    page.click(".choice", "Chart")
    page.wait("document.querySelectorAll('.chart rect.bar').length === 6")
    page.picture(IMAGES / "console-sql.png")
    page.ask(f"(() => {{ location.hash = '{job}'; return 1; }})()")
    page.wait(f"Number(document.querySelectorAll('.tiles dd')[1]?.innerText) >= {EPOCHS}")
    page.resize(1180, 1120)
    page.picture(IMAGES / "console-job.png")
    page.theme("dark")
    page.resize(390, 760, phone=True)
    page.click(".place", "SQL")
    page.click(".choice", "Table")
    page.wait("document.querySelectorAll('.grid tbody tr:not(.gap)').length === 6")
    page.picture(IMAGES / "console-phone.png")


def run(page: Page, sql: str) -> None:
    page.wait("document.querySelector('textarea')")
    page.ask("document.querySelector('textarea').select()")
    page.type(sql)
    page.press("Escape")
    page.click("textarea")
    page.press("Enter", CONTROL)


if __name__ == "__main__":
    sys.exit(main())
