"""Table: a query as a Python object, checked when it is created and run on demand."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tidemill.errors import ValidationError
from tidemill.late import late
from tidemill.session import arguments
from tidemill.session.arguments import text
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement
from tidemill.types.logical import Field

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

    from tidemill.session import binding, execution, explaining, inserts, selects
else:
    binding = late("tidemill.session.binding")
    execution = late("tidemill.session.execution")
    explaining = late("tidemill.session.explaining")
    inserts = late("tidemill.session.inserts")
    selects = late("tidemill.session.selects")


class Table:
    """PyFlink's Table, for queries in SQL; made by ``TableEnvironment.sql_query``. ``query`` has its text and
    its syntax tree."""

    def __init__(self, context: SessionContext, query: s.Query) -> None:
        self._context = context
        self.query = query
        self.fields: tuple[Field, ...] = binding.bind(context, query).fields

    def check_belongs(self, context: SessionContext) -> None:
        """ValidationError if the table is of another environment: there its names may mean other tables."""
        if context is not self._context:
            raise ValidationError(
                "A Table belongs to its TableEnvironment, and cannot be used in another one",
                hint="Make it there with sql_query(), or pass its rows: to_pandas(), to_spark().",
            )

    def execute(self) -> TableResult:
        """Runs the query. A streaming query is still running when this returns."""
        return selects.run_query(self._context, binding.bind(self._context, self.query))

    def execute_insert(self, table_path: str, overwrite: bool = False) -> TableResult:
        """Writes the rows into a table. A streaming job is still running when this returns."""
        written = self.insert_into(table_path, overwrite)
        sink = binding.bind_insert(self._context, written)
        return inserts.run_inserts(self._context, [sink], [written])

    def insert_into(self, table_path: str, overwrite: bool = False) -> s.Insert:
        """The INSERT statement that writes the rows into a table."""
        verb = "OVERWRITE" if overwrite else "INTO"
        parsed = parse_statement(f"INSERT {verb} {text(table_path, 'The path of a sink')} {self.query.text}")
        assert isinstance(parsed, s.Insert)
        return parsed

    def to_pandas(self) -> pd.DataFrame:
        """The final rows. Waits until the query has read its whole input, which must be bounded."""
        return self.execute().to_pandas()

    def to_spark(self) -> DataFrame:
        """The query as a lazy Spark DataFrame, in batch mode. ``types.physical`` lists the Spark types of the
        columns."""
        return execution.frame(self._context, binding.bind(self._context, self.query))

    def explain(self, *details: str) -> str:
        plan = binding.bind(self._context, self.query)
        return explaining.text(self._context, [plan], arguments.details(details))

    def print_schema(self) -> None:
        """Prints the columns and their types, as Flink does."""
        lines = [f"  `{f.name}` {f.type}" for f in self.fields]
        sys.stdout.write("(\n" + ",\n".join(lines) + "\n)\n")
