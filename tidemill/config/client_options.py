"""The interactive client and its output."""

from __future__ import annotations

from tidemill.config.option import Option

RESULT_MODE = Option(
    key="sql-client.execution.result-mode",
    kind=str,
    default="TABLEAU",
    choices=("TABLE", "TABLEAU", "CHANGELOG"),
    doc="How `tidemill sql` shows a query. TABLEAU and CHANGELOG print the changelog with its `op` "
    "column. TABLE prints the table that the changes make, on a terminal while it changes. "
    "Flink's default is TABLE.",
)
MAX_RESULT_ROWS = Option(
    key="sql-client.execution.max-table-result.rows",
    kind=int,
    default=1_000_000,
    least=1,
    doc="The most rows that result mode TABLE keeps.",
)
PRINT_TIME_COST = Option(
    key="sql-client.display.print-time-cost",
    kind=bool,
    default=True,
    doc="Whether the row count below a result includes the run time of the statement.",
)
VERBOSE = Option(
    key="sql-client.verbose",
    kind=bool,
    default=False,
    doc="Whether an error is shown with its Python stack.",
)
LAYOUT = Option(
    key="tidemill.display.layout",
    kind=str,
    default="AUTO",
    choices=("AUTO", "TABLE", "VERTICAL"),
    own=True,
    doc="The layout of a row: TABLE on one line, VERTICAL with a line for each column. AUTO is TABLE, "
    "but VERTICAL on a terminal that is too narrow for the table.",
)
OPTIONS = (RESULT_MODE, MAX_RESULT_ROWS, PRINT_TIME_COST, VERBOSE, LAYOUT)
