"""The table that a jdbc sink writes, as SQL text needs it."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.types.logical import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTable:
    """``name`` as the option has it, ``schema.table`` or ``table``; ``keys`` () to append."""

    name: str
    fields: tuple[Field, ...]
    keys: tuple[str, ...]

    @property
    def quoted(self) -> str:
        return ".".join(quote(part) for part in self.name.split("."))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(c for c in self.columns if c not in self.keys)

    def on_conflict(self) -> str:
        """The clause that makes an INSERT an upsert."""
        if not self.keys:
            return ""
        target = f" ON CONFLICT ({listed(self.keys)}) DO "
        if not self.others:
            return target + "NOTHING"
        return target + "UPDATE SET " + ", ".join(f"{quote(c)} = excluded.{quote(c)}" for c in self.others)


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def listed(names: tuple[str, ...]) -> str:
    return ", ".join(quote(n) for n in names)
