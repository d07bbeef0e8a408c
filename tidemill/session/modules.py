"""The modules of a session: ``core``, which has the built-in functions, and ``state``.

``state``, which is loaded where a statement asks for it, has the table function ``savepoint_metadata``.

Without it SHOW FUNCTIONS has no built-in ones; those that the SQL standard has can be called still, as in
Flink, and here so can the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemill.errors import ValidationError, unsupported_options

CORE, STATE = "core", "state"
METADATA = "savepoint_metadata"
"""The function of the module ``state``."""


@dataclass(slots=True)
class Modules:
    """``loaded`` in the order of loading; ``used``, among them, in the order in which names are sought."""

    loaded: list[str] = field(default_factory=lambda: [CORE])
    used: list[str] = field(default_factory=lambda: [CORE])

    def load(self, name: str, options: dict[str, str]) -> None:
        if name in self.loaded:
            raise ValidationError(f"A module with name '{name}' already exists")
        if name not in (CORE, STATE):
            raise ValidationError(
                f"Could not find any factory for identifier '{name}' that "
                "implements 'org.apache.flink.table.factories.ModuleFactory' in the classpath.\n\n"
                f"Available factory identifiers are:\n\n{CORE}\n{STATE}"
            )
        if options:
            raise ValidationError(unsupported_options(name, options, ()))
        self.loaded.append(name)
        self.used.append(name)

    def unload(self, name: str) -> None:
        if name not in self.loaded:
            raise ValidationError(f"No module with name '{name}' exists", expected=tuple(self.loaded))
        self.loaded.remove(name)
        if name in self.used:
            self.used.remove(name)

    def use(self, names: tuple[str, ...]) -> None:
        for place, name in enumerate(names):
            if name in names[:place]:
                raise ValidationError(f"Module '{name}' appears more than once")
            if name not in self.loaded:
                raise ValidationError(f"No module with name '{name}' exists", expected=tuple(self.loaded))
        self.used = list(names)

    @property
    def core_is_used(self) -> bool:
        """Whether built-in functions are listed."""
        return CORE in self.used

    @property
    def state_is_used(self) -> bool:
        return STATE in self.used
