"""EnvironmentSettings: PyFlink's settings of a new TableEnvironment, such as streaming or batch mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from tidemill.config.execution_options import RUNTIME_MODE


@dataclass(frozen=True, slots=True)
class EnvironmentSettings:
    """Made by ``in_streaming_mode()``, ``in_batch_mode()``, or ``new_instance()`` and its ``build()``."""

    streaming: bool = True
    configuration: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def in_streaming_mode(cls) -> Self:
        return cls(streaming=True)

    @classmethod
    def in_batch_mode(cls) -> Self:
        return cls(streaming=False)

    @staticmethod
    def new_instance() -> SettingsBuilder:
        return SettingsBuilder()

    def is_streaming_mode(self) -> bool:
        return self.streaming

    def options(self) -> dict[str, str]:
        """The option texts that stand for these settings."""
        return {**self.configuration, RUNTIME_MODE.key: "STREAMING" if self.streaming else "BATCH"}


@dataclass(slots=True)
class SettingsBuilder:
    """PyFlink's builder; the default mode is streaming."""

    _settings: EnvironmentSettings = field(default_factory=EnvironmentSettings)

    def in_streaming_mode(self) -> Self:
        self._settings = replace(self._settings, streaming=True)
        return self

    def in_batch_mode(self) -> Self:
        self._settings = replace(self._settings, streaming=False)
        return self

    def with_configuration(self, configuration: Mapping[str, str]) -> Self:
        self._settings = replace(self._settings, configuration=dict(configuration))
        return self

    def build(self) -> EnvironmentSettings:
        return self._settings
