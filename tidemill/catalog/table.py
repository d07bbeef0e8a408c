"""Tables and views as the catalog keeps them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from tidemill.files.entries import FileEntry
from tidemill.types.logical import Field, LogicalType


@dataclass(frozen=True, slots=True, order=True)
class ObjectPath:
    """catalog.database.object, each part as written, unquoted."""

    catalog: str
    database: str
    name: str

    def __str__(self) -> str:
        return f"{self.catalog}.{self.database}.{self.name}"


class ColumnKind(Enum):
    PHYSICAL = "physical"
    COMPUTED = "computed"
    METADATA = "metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """``expression`` is the SQL text of a computed column; ``metadata_key`` defaults to the name."""

    name: str
    type: LogicalType
    kind: ColumnKind = ColumnKind.PHYSICAL
    expression: str = ""
    metadata_key: str = ""
    virtual: bool = False
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkSpec:
    column: str
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """DISTRIBUTED BY: ``kind`` is HASH, RANGE or '' for the connector's choice; None ``buckets`` too."""

    kind: str = ""
    columns: tuple[str, ...] = ()
    buckets: int | None = None

    @property
    def ddl(self) -> str:
        """As SHOW CREATE TABLE has it."""
        names = ", ".join("`" + name.replace("`", "``") + "`" for name in self.columns)
        by = f" BY {self.kind}({names})" if names else ""
        return f"DISTRIBUTED{by}" + (f" INTO {self.buckets} BUCKETS" if self.buckets is not None else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition that was added to the catalog. ``values`` by column, in the table's order of them."""

    values: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...] = ()

    @property
    def spec(self) -> str:
        """As SHOW PARTITIONS has it."""
        return "/".join(f"{name}={value}" for name, value in self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What keeps a materialized table: the text of its query (with the catalog and database it was written
    in), how fresh its rows shall be, as an interval's text, and the job, '' until that has been started."""

    text: str
    default_catalog: str
    default_database: str
    freshness: str
    job_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """The part of a table that a DELETE or UPDATE writes anew: who reads the table reads these files alone,
    and what is written replaces them. ``files``: as they were listed; ``statement``: its first words;
    ``version``: the table's version that was listed, if tables have versions; ``states``: which deleted rows
    each file has in it, '' for none. ``change_type``: the column in which the sink wants the rows that
    change, too, as 'delete', 'update_preimage' or 'update_postimage' ('' for the rows of the new files); ''
    if it does not want them. ``places``: if there are any, the sink wants only the rows that change, each
    with these metadata (key and type) after the table's columns; then the files stay."""

    files: tuple[FileEntry, ...]
    statement: str
    version: int | None = None
    states: tuple[str, ...] = ()
    change_type: str = ""
    places: tuple[Field, ...] = ()

    @property
    def place_columns(self) -> tuple[str, ...]:
        """The names of the columns of ``places``, which no other column has."""
        return tuple(f"${field.name}" for field in self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable:
    """A table; ``columns`` in declared order with resolved types, ``primary_key`` column names.
    ``partitions`` are the catalog's: what there is to read is the connector's affair. ``upkeep`` is a
    materialized table's; ``rewriting`` is never the catalog's."""

    path: ObjectPath
    columns: tuple[Column, ...]
    options: dict[str, str] = field(hash=False)
    primary_key: tuple[str, ...] = ()
    primary_key_name: str = ""
    watermark: WatermarkSpec | None = None
    partitioned_by: tuple[str, ...] = ()
    comment: str = ""
    temporary: bool = False
    distribution: Distribution | None = None
    partitions: tuple[Partition, ...] = ()
    upkeep: Upkeep | None = None
    rewriting: Rewriting | None = None

    @property
    def physical_columns(self) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if c.kind is ColumnKind.PHYSICAL)

    @property
    def written_columns(self) -> tuple[Column, ...]:
        """What an INSERT fills: physical columns, and metadata that is not VIRTUAL."""
        stored = (ColumnKind.PHYSICAL, ColumnKind.METADATA)
        return tuple(c for c in self.columns if c.kind in stored and not c.virtual)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogView:
    """A view: its text (with the catalog and database it was created in), its columns' names and types."""

    path: ObjectPath
    text: str
    column_names: tuple[str, ...] = ()
    column_types: tuple[LogicalType, ...] = ()
    default_catalog: str = ""
    default_database: str = ""
    comment: str = ""
    temporary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogFrame:
    """A Spark DataFrame registered as a view; ``key`` names it in the session."""

    path: ObjectPath
    key: str
    fields: tuple[Field, ...]


CatalogObject = CatalogTable | CatalogView | CatalogFrame


def upkeep_of(entry: CatalogObject | None) -> Upkeep | None:
    """None where the entry is no materialized table."""
    return entry.upkeep if isinstance(entry, CatalogTable) else None
