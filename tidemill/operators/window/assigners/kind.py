"""The declaration of a window function: its parameters, its text in EXPLAIN, and its assigner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tidemill.operators.window.assigners.assigner import Assigner
from tidemill.operators.window.assigners.calendar import Calendar

Cut = Callable[[int, int, int], Assigner]
"""The assigner of a size, a slide (or step) and an offset."""


class Months(Protocol):
    """Lengths in months; 0 if missing or in milliseconds."""

    @property
    def size(self) -> int: ...
    @property
    def slide(self) -> int: ...
    @property
    def offset(self) -> int: ...


class Lengths(Months, Protocol):
    """The lengths of a window in milliseconds; 0 if missing or in ``months``."""

    @property
    def months(self) -> Months | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowKind:
    """``parameters``: of the table function behind DATA and TIMECOL, in order, of which the first
    ``required`` must be given; ``size``, ``slide``: which of them is the size, and the slide or step.
    ``grouped``: the same of the group window, by these roles. ``explained``: (label, role) as EXPLAIN shows
    the sizes. Example, for ``HOP(DATA, TIMECOL, SLIDE, SIZE, OFFSET)``::

        WindowKind(
            name="HOP",
            parameters=("SLIDE", "SIZE", "OFFSET"),
            required=2,
            slide="SLIDE",
            grouped=("slide", "size", "offset"),
            explained=(("size", "size"), ("slide", "slide")),
            cut=Hop.of,
        )

    ``is_data_driven``: the rows of a key determine the bounds of its windows. Otherwise the clock does, and
    there is ``cut`` for sizes in milliseconds, or for ``calendar`` in months. ``cut_months``: for a size in
    months and a step in milliseconds, if supported. ``cumulates``: several windows have the same start.

    The binder checks that lengths are positive. ``cut`` raises ValidationError for other invalid lengths; the
    binder adds the position of the call and the unit. Windows by the clock need a size, because all windows
    end at multiples of the greatest common divisor of size, slide and offset: mini-batches wait for these
    times.
    """

    name: str
    parameters: tuple[str, ...]
    required: int
    grouped: tuple[str, ...]
    explained: tuple[tuple[str, str], ...]
    size: str = "SIZE"
    slide: str = ""
    is_data_driven: bool = False
    cumulates: bool = False
    cut: Cut | None = None
    cut_months: Cut | None = None

    def __post_init__(self) -> None:
        lengths, required = {self.size, self.slide} - {""}, self.parameters[: self.required]
        if not self.is_data_driven and (self.cut is None or not lengths <= set(required)):
            raise ValueError(f"{self.name}: windows by the clock have 'cut' and require {sorted(lengths)}")

    def assigner(self, lengths: Lengths) -> Assigner:
        """The assigner of windows by the clock. ValidationError if no window has these lengths."""
        months = lengths.months
        assert self.cut is not None
        if months is None:
            return self.cut(lengths.size, lengths.slide, lengths.offset)
        if lengths.slide:
            assert self.cut_months is not None
            return self.cut_months(months.size, lengths.slide, lengths.offset)
        return Calendar(inner=self.cut(months.size, months.slide, months.offset), offset=lengths.offset)
