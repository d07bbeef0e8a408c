"""CREATE TABLE ... LIKE: what of the source table is taken, per feature.

Defaults are Flink's: everything is included, options of the new table overwrite the source's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tidemill.catalog.table import CatalogTable, Column, ColumnKind, Distribution
from tidemill.errors import ValidationError
from tidemill.session.schema.columns import declared
from tidemill.sql import statements as s

INCLUDING, EXCLUDING, OVERWRITING = "INCLUDING", "EXCLUDING", "OVERWRITING"
_FEATURES = ("CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS")
_MAY_OVERWRITE = ("GENERATED", "METADATA", "OPTIONS", "WATERMARKS")
_OF_KIND = {ColumnKind.COMPUTED: "GENERATED", ColumnKind.METADATA: "METADATA"}
_WORDS = {ColumnKind.COMPUTED: "generated", ColumnKind.METADATA: "metadata"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """The source table, the new statement, and the strategy per feature."""

    source: CatalogTable
    statement: s.CreateTable
    strategies: Mapping[str, str]

    def columns(self) -> tuple[Column, ...]:
        """The source's columns in their places, then the new ones."""
        kept = {c.name: c for c in self.source.columns if self._takes(c)}
        for definition in self.statement.columns:
            column = declared(definition)
            if column.name in kept:
                self._check_overwrite(kept[column.name], column, definition)
            kept[column.name] = column
        return tuple(kept.values())

    def options(self) -> dict[str, str]:
        new = dict(self.statement.options)
        strategy = self.strategies["OPTIONS"]
        if strategy == EXCLUDING:
            return new
        for key in new if strategy == INCLUDING else ():
            if key in self.source.options:
                raise ValidationError(
                    f"There already exists an option ['{key}' -> '{self.source.options[key]}']  in the base "
                    "table. You might want to specify EXCLUDING OPTIONS or OVERWRITING OPTIONS.",
                    position=self.statement.position,
                )
        return {**self.source.options, **new}

    def partitions(self) -> tuple[str, ...]:
        """A source's partitions come along even with EXCLUDING, where the new table names none."""
        new, old = self.statement.partitioned_by, self.source.partitioned_by
        if new and old and self.strategies["PARTITIONS"] != EXCLUDING:
            raise ValidationError(
                "The base table already has partitions defined. You might want to specify EXCLUDING "
                "PARTITIONS.",
                position=self.statement.position,
            )
        return new or old

    def distribution(self) -> Distribution | None:
        new, old = self.statement.distribution, self.source.distribution
        if self.strategies["DISTRIBUTION"] == EXCLUDING:
            return new
        if new is not None and old is not None:
            raise ValidationError(
                "The base table already has a distribution defined. You might want to specify EXCLUDING "
                "DISTRIBUTION.",
                position=self.statement.position,
            )
        return new or old

    def base(self) -> CatalogTable:
        """The source without what is excluded; its key and watermark where they stay."""
        source = self.source
        if self.strategies["CONSTRAINTS"] == EXCLUDING:
            source = replace(source, primary_key=(), primary_key_name="")
        elif self.statement.constraints and source.primary_key:
            raise ValidationError(
                "The base table already has a primary key. You might want to specify EXCLUDING CONSTRAINTS.",
                position=self.statement.position,
            )
        return self._with_watermark(source)

    def _with_watermark(self, source: CatalogTable) -> CatalogTable:
        if self.strategies["WATERMARKS"] == EXCLUDING or source.watermark is None:
            return replace(source, watermark=None)
        if not self.statement.watermarks:
            return source
        if self.strategies["WATERMARKS"] == INCLUDING:
            raise ValidationError(
                f"There already exists a watermark spec for column '{source.watermark.column}' in the base "
                "table. You might want to specify EXCLUDING WATERMARKS or OVERWRITING WATERMARKS.",
                position=self.statement.watermarks[0].position,
            )
        return replace(source, watermark=None)

    def _takes(self, column: Column) -> bool:
        feature = _OF_KIND.get(column.kind)
        return feature is None or self.strategies[feature] != EXCLUDING

    def _check_overwrite(self, old: Column, new: Column, definition: s.ColumnDefinition) -> None:
        feature = _OF_KIND.get(old.kind)
        if feature is None or old.kind is not new.kind:
            raise ValidationError(
                f"A column named '{old.name}' already exists in the base table.", position=definition.position
            )
        if self.strategies[feature] == INCLUDING:
            raise ValidationError(
                f"A {_WORDS[old.kind]} column named '{old.name}' already exists in the base table. You might "
                f"want to specify EXCLUDING {feature} or OVERWRITING {feature}.",
                position=definition.position,
            )


def strategies(like: s.Like) -> dict[str, str]:
    """The strategy per feature; refuses OVERWRITING where nothing can be overwritten."""
    chosen = {f: OVERWRITING if f == "OPTIONS" else INCLUDING for f in _FEATURES}
    for verb, feature in _ordered(like):
        if verb == OVERWRITING and feature not in _MAY_OVERWRITE:
            raise ValidationError(
                f"Illegal merging strategy '{verb}' for '{feature}' option.", position=like.position
            )
        chosen.update(dict.fromkeys(_FEATURES, verb) if feature == "ALL" else {feature: verb})
    return chosen


def _ordered(like: s.Like) -> Iterator[tuple[str, str]]:
    """ALL first: single features refine it wherever they stand."""
    pairs = [(verb.upper(), feature.upper()) for verb, feature in like.options]
    yield from (p for p in pairs if p[1] == "ALL")
    yield from (p for p in pairs if p[1] != "ALL")


def merged(source: CatalogTable, statement: s.CreateTable, like: s.Like) -> CatalogTable:
    """The table before the new statement's own key and watermark are added."""
    merge = Merge(source=source, statement=statement, strategies=strategies(like))
    base = merge.base()
    return replace(
        base,
        columns=merge.columns(),
        options=merge.options(),
        partitioned_by=merge.partitions(),
        distribution=merge.distribution(),
        comment=statement.comment,
        temporary=statement.temporary,
    )
