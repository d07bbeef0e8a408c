"""JSON paths: an optional mode (strict unless lax), then member, index and wildcard steps.

Only such steps are taken; filters, slices, unions, recursive descent and functions are refused by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidemill.errors import NotSupportedError

_MODE = re.compile(r"\s*(?P<mode>strict|lax)\s+(?P<path>.*)", re.IGNORECASE | re.DOTALL)
_STEP = re.compile(
    r"""\.?\[\s*(?:'(?P<single>(?:[^'\\\]])*)'|"(?P<double>(?:[^"\\\]])*)"|(?P<index>-?\d+)|(?P<star>\*))\s*\]
      | \.(?P<member_star>\*)
      | \.(?P<member>[^.\[\]()\s*'"@?,:]+)(?!\()""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Step:
    """A member (``name``), an element (``index``, negative from the end) or, with neither, all of them."""

    name: str | None = None
    index: int | None = None

    @property
    def is_wildcard(self) -> bool:
        return self.name is None and self.index is None


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonPath:
    lax: bool
    steps: tuple[Step, ...]
    text: str


def parse_path(path: object, function: str) -> JsonPath:
    """The path of a literal; NotSupportedError for what is not understood or not a literal."""
    if not isinstance(path, str):
        raise NotSupportedError(f"{function} with a path that is not a literal")
    moded = _MODE.fullmatch(path)
    lax = moded is not None and moded["mode"].lower() == "lax"
    text = moded["path"] if moded else path
    rooted = text if text.startswith("$") else f"$.{text}"
    steps: list[Step] = []
    position = 1
    while position < len(rooted):
        match = _STEP.match(rooted, position)
        if match is None:
            raise NotSupportedError(f"{function}: JSON path '{path}' (only members, indexes and [*])")
        steps.append(_step(match))
        position = match.end()
    return JsonPath(lax=lax, steps=tuple(steps), text=rooted)


def _step(match: re.Match[str]) -> Step:
    if match["index"] is not None:
        return Step(index=int(match["index"]))
    name = next((match[g] for g in ("single", "double", "member") if match[g] is not None), None)
    return Step(name=name)
