"""The console in a browser, over a gateway with Spark: by keys, by pointer, on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.gateway.browser import ALT, CONTROL, MISSING, Browser, Page, browser, found_browser
from tests.gateway.fakes import gateway
from tidemill.config.option import Configuration
from tidemill.gateway.endpoints.rest.endpoint import RestEndpoint
from tidemill.gateway.security.users import password_hash
from tidemill.gateway.start import GatewayProcess

PROGRAM = found_browser()
pytestmark = [pytest.mark.thorough, pytest.mark.skipif(PROGRAM is None, reason=MISSING)]

HOSTILE = """SELECT * FROM (VALUES
  ('<img src=x onerror="window.hacked=1">', 9223372036854775807,
   CAST('12345678901234567.123456789' AS DECIMAL(38, 9))),
  ('<script>window.hacked=1</script>', -9223372036854775807, CAST('-0.000000001' AS DECIMAL(38, 9))),
  (CAST(NULL AS STRING), 9223372036854775806, CAST(NULL AS DECIMAL(38, 9)))) AS t (`<b>a`, b, c);"""
NUMBERS = """CREATE TEMPORARY TABLE numbers (id INT) WITH ('connector' = 'datagen', 'rows-per-second' = '200',
  'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '1000000');
CREATE TEMPORARY TABLE hole (m INT, n BIGINT) WITH ('connector' = 'blackhole');"""
ODD = "SELECT MOD(n, 2) AS m, COUNT(*) AS c FROM (VALUES (1), (2), (3)) AS v(n) GROUP BY MOD(n, 2);"
COUNTS = "SELECT MOD(id, 3) AS m, COUNT(*) AS n FROM numbers GROUP BY MOD(id, 3);"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(PROGRAM or "", tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def address(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("gateway")
    house = GatewayProcess(
        Configuration({"tidemill.gateway.directory": str(folder), "parallelism.default": "1"})
    )
    house.start()
    endpoint = RestEndpoint(house.gateway, Configuration({"sql-gateway.endpoint.rest.port": "0"}))
    endpoint.start()
    yield endpoint.address
    endpoint.stop()
    house.close()


@pytest.fixture
def page(chromium: Browser, address: str) -> Iterator[Page]:
    """Nothing goes elsewhere, and nothing is complained of, whatever a test does."""
    found = chromium.page()
    found.resize(1200, 800)
    found.go(f"{address}/console/")
    found.wait("document.querySelector('textarea')")
    yield found
    assert found.complaints() == []
    assert [url for url in found.requests() if not url.startswith((address, "about:"))] == []


def write(page: Page, sql: str) -> None:
    page.click("textarea")
    page.ask("document.querySelector('textarea').select()")
    page.type(sql)


def run(page: Page, sql: str) -> None:
    write(page, sql)
    page.press("Enter", CONTROL)


def cells(page: Page) -> list[list[str]]:
    found: list[list[str]] = page.ask(
        "[...document.querySelectorAll('.grid tbody tr:not(.gap)')]"
        ".map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    return found


def test_values_are_text_with_all_their_digits(page: Page) -> None:
    run(page, HOSTILE)
    page.wait("document.querySelector('.resultbar .pill.finished')")
    assert cells(page) == [
        ['<img src=x onerror="window.hacked=1">', "9223372036854775807", "12345678901234567.123456789"],
        ["<script>window.hacked=1</script>", "-9223372036854775807", "-0.000000001"],
        ["NULL", "9223372036854775806", "NULL"],
    ]
    assert page.text(".grid th button") == "<b>a"
    style = "getComputedStyle(document.querySelector('.grid th button'))"
    # What a line of text has below it, an underscore, is within the button: all else of it is cut.
    assert page.ask(f"parseFloat({style}.lineHeight) >= 1.4 * parseFloat({style}.fontSize)")
    page.click(".grid th button", "b")
    page.click(".grid th:nth-child(2) button")
    assert [row[1] for row in cells(page)] == [
        "-9223372036854775807",
        "9223372036854775806",
        "9223372036854775807",
    ]
    page.click(".grid td", "<img")
    assert 'onerror="window.hacked=1"' in page.text("dialog")
    page.press("Escape")
    page.click(".choice", "Chart")
    page.wait("document.querySelector('.chart svg rect.bar')")
    assert page.ask("window.hacked === undefined && !document.querySelector('main img, main script')")
    inline = (
        "const e = document.createElement('script'); e.text = 'window.hacked = 1'; document.body.append(e)"
    )
    page.ask(f"(() => {{ {inline}; return 1; }})()")
    assert page.ask("window.hacked === undefined")
    page.browser._events.clear()  # the browser has said that it refused the script


def wait_for_more(page: Page) -> None:
    """The second column's sum grows."""
    page.wait("document.querySelectorAll('.grid tbody tr:not(.gap)').length === 3")
    before = sum(int(row[1]) for row in cells(page))
    page.wait(
        "[...document.querySelectorAll('.grid tbody tr:not(.gap) td:nth-child(2)')]"
        f".reduce((sum, c) => sum + Number(c.textContent), 0) > {before}"
    )


def test_a_query_that_does_not_end(page: Page) -> None:
    run(page, f"{NUMBERS}\n{COUNTS}")
    page.wait("document.querySelectorAll('.grid tbody tr:not(.gap)').length === 3")
    wait_for_more(page)
    assert sorted(m for m, _ in cells(page)) == ["0", "1", "2"]
    page.click(".choice", "Changes")
    page.wait("document.querySelector('.grid .kind.update_before')")
    assert {row[0] for row in cells(page)} >= {"-U", "+U"}
    page.click(".choice", "Chart")
    page.wait("document.querySelector('.chart svg > *')")
    page.ask(
        "(() => { const s = document.querySelector('.choices select'); s.value = 'line';"
        "s.dispatchEvent(new Event('change')); return 1; })()"
    )
    page.wait("document.querySelector('.chart path.line')")
    page.click(".button", "Pause")
    page.wait("document.querySelector('.resultbar .pill.paused')")
    page.click(".button", "Resume")
    page.wait("document.querySelector('.resultbar .pill.live')")
    page.click(".choice", "Table")
    wait_for_more(page)
    page.click(".resultbar .button", "Stop")
    page.wait("document.querySelector('.resultbar .pill.stopped')")
    page.click(".tab", "Messages")
    assert "CREATE TEMPORARY TABLE hole" in page.text(".messages")


def test_keys_completion_history_and_errors(page: Page) -> None:
    run(page, "CREATE TEMPORARY VIEW words AS SELECT * FROM (VALUES ('a')) AS t (letter);")
    page.wait("document.querySelector('.messages .pill.done')")
    write(page, "SELECT * FROM wor")
    page.press(" ", CONTROL)
    page.wait("document.querySelector('.completion:not([hidden]) [aria-selected=true]')")
    page.press("Tab")
    assert page.ask("document.querySelector('textarea').value").endswith("default_database.words")
    page.press("Enter", CONTROL)
    page.wait("document.querySelector('.resultbar .pill.finished')")
    assert cells(page) == [["a"]]
    run(page, "SELECT nothing FROM words;\nSELECT 1;")
    page.wait("document.querySelector('.messages .pill.error')")
    said = page.text(".messages li:last-child .said")
    assert "nothing" in said
    assert "line 1, column 8" in said
    page.press("ArrowUp", ALT)
    page.press("ArrowUp", ALT)
    assert page.ask("document.querySelector('textarea').value").endswith("default_database.words;")
    page.press("Escape")
    for key, title in (("j", "Jobs"), ("o", "Sessions"), ("c", "Catalogs")):
        page.press("g")
        page.press(key)
        page.wait(f"document.querySelector('h1')?.textContent === '{title}'")
    page.press("?")
    assert "Ctrl" in page.text("dialog.keys")
    page.press("Escape")
    page.click(".tree a", "words")
    page.click(".tree a", "words")
    page.wait("document.querySelector('.split .content td code')?.textContent.startsWith('CHAR')")
    page.click(".button", "Query it")
    page.wait("document.querySelector('textarea')")
    assert page.ask("document.querySelector('textarea').value") == (
        "SELECT * FROM default_catalog.default_database.words;"
    )


def test_errors_are_marked_at_their_place(page: Page) -> None:
    words = "FROM (VALUES ('a')) AS words (letter)"
    run(page, f"SET 'a' = 'b';\n SELECT letter,\n  nothing {words};")
    page.wait("document.querySelector('.messages .pill.error')")
    assert marked(page) == "nothing"
    page.click("textarea")
    page.type(" ")
    assert marked(page) == ""
    run(page, "SET 'a' = 'b';\n SELECT letter FORM words;")
    page.wait("document.querySelectorAll('.messages .pill.error').length === 2")
    assert marked(page) == "words"
    lines = page.text(".messages li:last-child .said").splitlines()
    assert lines[1].startswith("Did you mean FROM")
    assert [line[:9] for line in lines[2:]] == ["Expected:"]
    words = "".join(f'\\n    "W{n}" ...' for n in range(20))
    said = page.ask(
        f"""import('/console/app/api.js').then(({{said}}) => said(
          'x\\nCaused by: a.B: No.\\nWas expecting one of:{words}\\nDo this.\\n\\nEnd of exception'))"""
    )
    assert said == "No.\nDo this.\nExpected: W0, W1, W2, W3, W4 or 15 others"


def marked(page: Page) -> str:
    """The word of the editor that is marked as wrong: what stands at the mark's place."""
    return str(
        page.ask(
            """(() => {
              const mark = document.querySelector('.editor .wrong');
              if (mark.hidden) return '';
              const {left, right, top, bottom} = mark.getBoundingClientRect();
              const layer = document.querySelector('.layer');
              const walker = document.createTreeWalker(layer, NodeFilter.SHOW_TEXT);
              let found = '';
              for (let node = walker.nextNode(); node; node = walker.nextNode()) {
                for (let place = 0; place < node.length; place += 1) {
                  const range = document.createRange();
                  range.setStart(node, place);
                  range.setEnd(node, place + 1);
                  const r = range.getBoundingClientRect();
                  const [x, y] = [(r.left + r.right) / 2, (r.top + r.bottom) / 2];
                  if (x > left && x < right && y > top && y < bottom) found += node.data[place];
                }
              }
              return found;
            })()"""
        )
    )


def test_a_job_is_seen_and_stopped(page: Page) -> None:
    run(page, f"{NUMBERS}\nINSERT INTO hole {COUNTS}")
    page.click(".messages .said a")
    page.wait("document.querySelectorAll('.graph .node').length === 3")
    assert page.ask("[...document.querySelectorAll('.graph .node b')].map((e) => e.textContent)") == [
        "numbers",
        "GroupAggregate",
        "hole",
    ]
    page.wait("document.querySelectorAll('.charts path.line').length >= 3")
    page.wait("/[1-9]/.test(document.querySelector('.graph .operator .rows').textContent)")
    assert page.ask(
        "/^[1-9][0-9,]* rows read$/.test(document.querySelector('.graph .source .rows').textContent)"
    )
    assert page.text(".statement") == f"INSERT INTO hole {COUNTS}".rstrip(";")
    assert "parallelism.default" in page.ask("document.querySelector('.options').textContent")
    assert page.ask("document.querySelectorAll('.partition').length") == 1
    assert "restart point" in page.text("main")
    left = "getBoundingClientRect().left"
    cut = f"filter((e) => e.{left} < e.closest('svg').{left})"
    assert page.ask(f"[...document.querySelectorAll('.chart svg text')].{cut}.length") == 0
    assert page.text("h1") == "insert-into_default_catalog.default_database.hole"
    page.click(".head .button.danger")
    page.click("dialog .danger")
    page.wait("document.querySelector('.head .pill.canceled')")
    page.press("g")
    page.press("j")
    page.wait("document.querySelector('.list .pill.canceled')")
    page.resize(390, 780, phone=True)
    assert page.ask("document.querySelector('.list .pill').getBoundingClientRect().right <= innerWidth")
    page.click(".filter input")
    page.type("no such job")
    page.wait("document.querySelector('main .state')?.textContent.includes('No such job')")
    page.ask("document.querySelector('.filter input').select()")
    page.type("hole")
    page.wait("document.querySelector('.list .pill.canceled')")
    page.click(".place", "Lineage")
    page.wait("document.querySelectorAll('.graph .node').length >= 3")
    assert page.ask("[...document.querySelectorAll('.graph .node b')].map((e) => e.textContent)") == [
        "numbers",
        "insert into hole",
        "hole",
    ]


def test_what_has_ended_is_in_the_history(page: Page) -> None:
    run(page, "SET 'execution.runtime-mode' = 'batch';\nSET 'pipeline.name' = 'odd <b>ones</b>';\n" + ODD)
    page.wait("document.querySelectorAll('.grid tbody tr:not(.gap)').length === 2")
    page.press("Escape")
    page.click(".place", "History")
    page.wait("document.querySelector('.list tbody a')")
    rows = "[...document.querySelectorAll('.list tbody tr')]"
    row = f"{rows}.find((r) => r.innerText.includes('odd <b>ones</b>'))"
    read = f"[...{row}.children].map((cell) => cell.innerText)"
    assert (page.ask(read)[1:3], page.ask(read)[4]) == (["finished", "batch"], "2")
    page.ask(f"{row}.querySelector('a').click()")
    page.wait("document.querySelector('.graph .node')")
    assert page.text("h1") == "odd <b>ones</b>"
    assert "Aggregate" in page.text(".graph")
    assert page.ask("document.querySelectorAll('.list tbody tr').length") >= 1  # the stages in Spark
    page.resize(390, 780, phone=True)
    assert page.ask("document.documentElement.scrollWidth <= innerWidth")
    page.click(".back")
    page.wait("document.querySelector('.list tbody a')")


def test_sessions_and_an_operation_is_cancelled(page: Page, address: str) -> None:
    run(page, "SELECT 1;")
    page.wait("document.querySelector('.resultbar .pill.finished')")
    page.ask(
        "fetch('/v4/sessions', {method: 'POST', body: '{\"sessionName\": \"other\"}'}).then((a) => a.status)"
    )
    page.click(".place", "Sessions")
    page.wait("[...document.querySelectorAll('.card')].some((c) => c.innerText.includes('other'))")
    assert "SELECT 1" in page.text("main")
    count = page.ask("document.querySelectorAll('.card .button').length")
    page.click(".card header .danger")
    page.click("dialog .danger")
    page.wait(f"document.querySelectorAll('.card .button').length < {count}")


def test_what_never_ends_keeps_its_size(page: Page) -> None:
    """By the modules themselves: more rows than a test could wait for."""
    found = page.ask(
        """(async () => {
          const {Folded} = await import('/console/results/folded.js');
          const {Bounded} = await import('/console/results/bounded.js');
          const {Trace} = await import('/console/charts/trace.js');
          const {compareExact} = await import('/console/results/types.js');
          const folded = new Folded(100), few = new Folded(), wide = new Folded(1000, 5000);
          const bounded = new Bounded(100), trace = new Trace();
          for (let n = 0; n < 5000; n += 1) {
            folded.change('INSERT', [String(n)], 0);
            bounded.add('INSERT', [String(n)]);
            wide.change('INSERT', ['x'.repeat(100) + n], 0);
          }
          few.change('INSERT', ['a', '1'], 0);
          few.change('INSERT', ['b', '1'], 0);
          few.change('INSERT', ['b', '1'], 0);
          few.change('UPDATE_BEFORE', ['a', '1'], 0);
          few.change('UPDATE_AFTER', ['a', '2'], 0);
          few.change('DELETE', ['b', '1'], 0);
          for (let n = 0; n < 1000; n += 1) trace.sample(n * 1000, few);
          folded.change('DELETE', ['0'], 0);
          const numbers = ['10', '-2.5', '9', '-10', '9.50', '9.5',
            '9223372036854775807', '9223372036854775806', '0'];
          return [folded.length, folded.forgot, folded.byRow.size, bounded.length, bounded.held.length <= 201,
            bounded.at(0).row[0], wide.length < 50, [...few.values()].map((v) => v.row.join(' ')),
            trace.samples.length, numbers.sort(compareExact).join(' ')];
        })()"""
    )
    assert found == [
        100,
        4900,
        100,
        100,
        True,
        "4900",
        True,
        ["a 2", "b 1"],
        300,
        "-10 -2.5 0 9 9.50 9.5 10 9223372036854775806 9223372036854775807",
    ]


def test_dark_light_and_a_phone(page: Page) -> None:
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    page.theme("dark")
    dark = page.ask(ground)
    page.theme("light")
    light = page.ask(ground)
    assert dark != light
    page.click(".quiet", "Dark / light")
    assert page.ask(ground) == dark
    page.resize(390, 780, phone=True)
    for name in ("Jobs", "History", "Sessions", "Catalogs", "SQL"):
        page.click(".place", name)
        page.wait(f"document.title.startsWith('{name}')")
        assert page.ask("document.documentElement.scrollWidth <= innerWidth")
    page.click("textarea")
    page.type("SELECT 7 AS seven;")
    page.click(".bar .primary", "Run")
    page.wait("document.querySelector('.grid td')?.textContent === '7'")
    assert page.ask("document.querySelector('.grid').getBoundingClientRect().bottom <= innerHeight")


def test_who_asks_says_who_he_is(chromium: Browser, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(f"ann:{password_hash('pässword:1')}\n", encoding="utf-8")
    made, _ = gateway(tmp_path)
    options = {
        "sql-gateway.endpoint.rest.port": "0",
        "tidemill.gateway.authentication": "PASSWORD",
        "tidemill.gateway.users-file": str(users),
    }
    endpoint = RestEndpoint(made, Configuration(options))
    endpoint.start()
    try:
        page = chromium.page()
        page.go(f"{endpoint.address}/console/")
        page.wait("document.querySelector('form.login')")
        problem = "document.querySelector('.problem').textContent"
        for word, then in (("wrong", problem), ("pässword:1", "document.querySelector('textarea')")):
            page.ask("document.querySelector('form').reset()")
            page.click("#name")
            page.type("ann")
            page.click("#password")
            page.type(word)
            page.press("Enter")
            page.wait(then)
        run(page, "x")
        page.wait("document.querySelectorAll('.grid td').length === 3")
        assert [s.user for s in made.list_sessions(user=None)] == ["ann"]
        kept = page.ask("JSON.stringify({...sessionStorage, ...localStorage}) + document.cookie")
        assert "pässword" not in kept
        page.click(".quiet", "sign out")
        page.wait("document.querySelector('form.login')")
    finally:
        endpoint.stop()
        made.close()
