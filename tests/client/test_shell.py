"""The shell: when a statement is complete, what it answers, what Tab offers."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.patch_stdout import StdoutProxy
from pyspark.sql import SparkSession

from tests.session.environments import new_session
from tidemill.changelog.rowkind import RowKind
from tidemill.client.completion import SqlCompleter
from tidemill.client.folding import Folding
from tidemill.client.shell import Shell, continued, is_complete, terminal_lines


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; ", True),
        ("SELECT ';", False),
        ("SELECT 'a;b'", False),
        ("SELECT 1; SELECT 2", False),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1;", False),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1; END;", True),
        ('SELECT "a";', True),
        ('SELECT "a"', False),
        ("SELECT /* ;", False),
        ("quit", True),
        ("help;", True),
        ("\\q", True),
        ("\\help;", True),
        ("\\x", True),
        ("\\dt", True),
        ("\\d orders", True),
        ("\\plot SELECT 1", False),
        ("\\plot SELECT a;", True),
        ("\\plot SELECT ';", False),
    ],
)
def test_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ("SELECT", "        > "),
        ("SELECT 'a;", "      ' > "),
        ("SELECT `a", "      ` > "),
        ("SELECT 1 /* one", "      / > "),
        ('SELECT "', "        > "),
    ],
)
def test_the_prompt_shows_what_is_open(text: str, prompt: str) -> None:
    assert continued(text) == prompt


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT 1 AS a,\n'b;\nSELECT 2;\n", "a string that starts at line 2, column 1 does not end"),
        (
            "SELECT 'b;\nSELECT 'x';\n",
            "The string that starts at line 1, column 8 goes on over lines that end",
        ),
        (
            "SELECT 'b;\nSELECT 'x AS y;",
            "The string that starts at line 1, column 8 goes on over lines that end",
        ),
    ],
)
def test_an_error_names_the_string_that_swallowed_statements(text: str, said: str) -> None:
    out = io.StringIO()
    assert not Shell(new_session(), out).run_script(text)
    assert said in out.getvalue()


def test_a_failing_statement_does_not_end_the_shell(spark: SparkSession) -> None:
    out = io.StringIO()
    session = new_session()
    session.execute_sql("SET 'sql-client.display.print-time-cost' = 'false'")
    texts = [
        "SELECT * FROM nope;",
        "CREATE VIEW v AS SELECT 1 AS a; SHOW VIEWS;",
        "HELP;",
        "QUIT;",
        "SHOW CATALOGS;",
    ]
    Shell(session, out).loop(iter(texts))
    shown = out.getvalue()
    assert "[VALIDATION] Object 'nope' not found" in shown
    assert "| view name |\n+-----------+\n|         v |" in shown
    assert "Statements end with a semicolon" in shown
    assert "default_catalog |" not in shown


def test_an_unknown_command_does_not_wait_for_a_semicolon() -> None:
    out = io.StringIO()
    assert Shell(new_session(), out).run_script("\\dt")
    assert out.getvalue() == "There is no such command. \\help lists those there are.\n"


def test_an_insert_at_a_terminal_gives_the_prompt_back(spark: SparkSession) -> None:
    out = io.StringIO()
    session = new_session()
    shell = Shell(session, out, interactive=True)
    texts = [
        "CREATE TABLE s (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1');",
        "CREATE TABLE t (a INT) WITH ('connector' = 'blackhole');",
        "INSERT INTO t SELECT a FROM s;",
        "SHOW JOBS;",
    ]
    shell.loop(iter(texts))
    (started,) = session.context.jobs.all()
    job = started.job
    assert job.is_running()
    assert f"successfully submitted:\nJob ID: {job.job_id}" in out.getvalue()
    assert f"| {job.job_id} | insert-into_default_catalog.default_database.t | RUNNING |" in out.getvalue()
    shell.loop(iter([f"STOP JOB '{job.job_id}';", "STOP JOB 'x';", f"STOP JOB '{job.job_id}' WITH DRAIN;"]))
    assert job.status == "CANCELED"
    shown = out.getvalue()
    assert f"Job {job.job_id} (insert-into_default_catalog.default_database.t): CANCELED" in shown
    assert "There is no job 'x'." in shown
    assert "WITH DRAIN could only be used after WITH SAVEPOINT" in shown


def until(seen: Callable[[], bool]) -> None:
    """Waits for what another thread does; a minute at most."""
    for _ in range(6000):
        if seen():
            return
        threading.Event().wait(0.01)


def test_what_a_job_prints_behind_the_prompt_stands_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/nonexistent")
    screen = io.StringIO()
    output = Vt100_Output(screen, lambda: Size(rows=24, columns=80), term="dumb", enable_cpr=False)

    def print_sink() -> None:
        until(lambda: isinstance(sys.stdout, StdoutProxy) and "tidemill>" in screen.getvalue())
        sys.stdout.write("+I[1, printed]\n")
        sys.stdout.flush()
        until(lambda: "+I[1, printed]" in screen.getvalue())
        keys.send_text("SELECT 1;\r")

    with create_pipe_input() as keys, create_app_session(input=keys, output=output):
        thread = threading.Thread(target=print_sink)
        thread.start()
        assert next(terminal_lines(SqlCompleter(new_session().context))) == "SELECT 1;"
        thread.join()
    assert not isinstance(sys.stdout, StdoutProxy)
    before, printed, after = screen.getvalue().partition("+I[1, printed]")
    assert printed
    assert "tidemill>" in before
    assert "tidemill>" in after


def test_jobs_behind_the_prompt_stop_with_the_shell(spark: SparkSession) -> None:
    session = new_session()
    shell = Shell(session, io.StringIO(), interactive=True)
    shell.loop(
        iter(
            [
                "CREATE TABLE s (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1');",
                "CREATE TABLE t (a INT) WITH ('connector' = 'blackhole');",
                "INSERT INTO t SELECT a FROM s;",
                "\\q",
            ]
        )
    )
    shell.end_jobs()
    assert [s.job.status for s in session.context.jobs.all()] == ["CANCELED"]


def test_with_dml_sync_an_insert_is_waited_for(spark: SparkSession) -> None:
    out = io.StringIO()
    session = new_session()
    shell = Shell(session, out, interactive=True)
    shell.loop(
        iter(
            [
                "CREATE TABLE t (a INT) WITH ('connector' = 'blackhole');",
                "SET 'table.dml-sync' = 'true';",
                "INSERT INTO t VALUES (1);",
            ]
        )
    )
    assert [s.job.status for s in session.context.jobs.all()] == ["FINISHED"]
    assert "Complete execution of the SQL update statement." in out.getvalue()


def test_a_line_for_each_column(spark: SparkSession) -> None:
    out = io.StringIO()
    session = new_session()
    session.execute_sql("SET 'sql-client.display.print-time-cost' = 'false'")
    Shell(session, out).loop(
        iter(["\\x", "SELECT * FROM (VALUES (1, 'a\nb'), (CAST(NULL AS INT), 'c')) AS t(id, `long name`);"])
    )
    assert out.getvalue().splitlines() == [
        "Rows are shown in lines: one for each column.",
        "-[ row 1, +I ]-------------------",
        "       id | 1",
        "long name | a",
        "          | b",
        "-[ row 2, +I ]-------------------",
        "       id | <NULL>",
        "long name | c",
        "2 rows in set",
        "",
    ]


def test_table_mode_shows_final_rows(spark: SparkSession) -> None:
    out = io.StringIO()
    session = new_session(**{"sql_client__execution__result_mode": "table"})
    session.execute_sql("SET 'sql-client.display.print-time-cost' = 'false'")
    Shell(session, out).loop(iter(["SELECT COUNT(*) AS n FROM (VALUES 1, 2, 3) AS t(a);"]))
    assert out.getvalue().splitlines()[:5] == ["+---+", "| n |", "+---+", "| 3 |", "+---+"]


def test_a_plot_of_a_query(spark: SparkSession) -> None:
    out = io.StringIO()
    Shell(new_session(), out).loop(
        iter(["\\plot SELECT k, n FROM (VALUES ('flink', 2), ('spark', 4)) AS t(k, n);", "\\plot"])
    )
    title, *bars = out.getvalue().splitlines()[:3]
    assert title == "n by k"
    assert [(bar.split()[0], bar.split()[-1]) for bar in bars] == [("flink", "2"), ("spark", "4")]
    assert bars[1].count("█") in (2 * bars[0].count("█"), 2 * bars[0].count("█") + 1)


def test_folding_keeps_duplicates_and_the_latest_rows() -> None:
    insert, delete = RowKind.INSERT, RowKind.DELETE
    changes = [(insert, ("a",)), (insert, ("a",)), (insert, ("b",)), (delete, ("a",)), (insert, ("c",))]
    assert Folding.of(changes, 10).rows == [("a",), ("b",), ("c",)]
    assert Folding.of(changes, 1).rows == [("c",)]


def offered(text: str) -> list[str]:
    session = new_session()
    session.execute_sql("CREATE TABLE Orders (order_id INT) WITH ('connector'='blackhole')")
    completer = SqlCompleter(session.context)
    return [c.text for c in completer.get_completions(Document(text), CompleteEvent())]


def test_completion_knows_tables_columns_functions_keywords_and_options() -> None:
    assert {"Orders", "order_id", "order"} <= set(offered("SELECT * FROM ord"))
    assert "SELECT" in offered("SEL")
    assert "upper(" in offered("SELECT upp")
    assert "table.exec.mini-batch.size" in offered("SET 'table.exec.mini-batch.s")
    assert offered("SELECT ") == []
