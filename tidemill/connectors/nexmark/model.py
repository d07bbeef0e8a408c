"""The numbers behind Nexmark's events: which event is what, when, and which ids are in play.

The stream repeats rounds of persons, auctions and bids in the given proportions (1 : 3 : 46). Ids
count up from 1000 per kind; "hot" ones are preferred. All of it is arithmetic on the event's number,
after the generator of the Nexmark benchmark for Flink.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]

FIRST_PERSON_ID = 1000
FIRST_AUCTION_ID = 1000
FIRST_CATEGORY_ID = 10
NUM_CATEGORIES = 5
PERSON, AUCTION, BID = 0, 1, 2

_ACTIVE_PEOPLE = 1000
_IN_FLIGHT_AUCTIONS = 100
_PERSON_LEAD = 10
_AUCTION_LEAD = 10
_HOT_EVERY = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """``base_time``: event time of event 0, ms since 1970. ``rate``: events per second of event time.
    Hot ratios: one in so many is not hot. Sizes: average bytes of a record, ``extra`` fills them up."""

    base_time: int
    rate: float
    person_proportion: int
    auction_proportion: int
    bid_proportion: int
    hot_auctions: int
    hot_bidders: int
    hot_sellers: int
    person_size: int
    auction_size: int
    bid_size: int

    @property
    def round(self) -> int:
        return self.person_proportion + self.auction_proportion + self.bid_proportion

    def kinds(self, events: Numbers) -> npt.NDArray[np.int32]:
        place = events % self.round
        later = (place >= self.person_proportion).astype(np.int32)
        return later + (place >= self.person_proportion + self.auction_proportion)

    def times(self, events: Numbers) -> Numbers:
        """Event times in milliseconds."""
        result: Numbers = self.base_time + (events * (1_000_000.0 / self.rate) // 1000).astype(np.int64)
        return result

    def last_person(self, events: Numbers) -> Numbers:
        """The newest person before or at each event, counted from 0."""
        rounds, place = np.divmod(events, self.round)
        result: Numbers = rounds * self.person_proportion + np.minimum(place, self.person_proportion - 1)
        return result

    def last_auction(self, events: Numbers) -> Numbers:
        """The newest auction before or at each event, counted from 0; -1 before the first."""
        rounds, place = np.divmod(events, self.round)
        offset = np.minimum(place - self.person_proportion, self.auction_proportion - 1)
        result: Numbers = rounds * self.auction_proportion + np.maximum(offset, -1)
        return result

    def some_person(self, events: Numbers, draw: npt.NDArray[np.float64]) -> Numbers:
        people = self.last_person(events) + 1
        active = np.minimum(people, _ACTIVE_PEOPLE)
        result: Numbers = people - active + _scaled(draw, active + _PERSON_LEAD)
        return result

    def some_auction(self, events: Numbers, draw: npt.NDArray[np.float64]) -> Numbers:
        newest = np.maximum(self.last_auction(events), 0)
        oldest = np.maximum(newest - _IN_FLIGHT_AUCTIONS, 0)
        result: Numbers = oldest + _scaled(draw, newest - oldest + 1 + _AUCTION_LEAD)
        return result

    def hot_auction(self, events: Numbers) -> Numbers:
        result: Numbers = np.maximum(self.last_auction(events), 0) // _HOT_EVERY * _HOT_EVERY
        return result

    def hot_person(self, events: Numbers) -> Numbers:
        result: Numbers = self.last_person(events) // _HOT_EVERY * _HOT_EVERY
        return result

    def auction_length(self, events: Numbers, draw: npt.NDArray[np.float64]) -> Numbers:
        """Milliseconds that an auction stays open: up to twice the time of a hundred auctions more."""
        ahead = _IN_FLIGHT_AUCTIONS * self.round // self.auction_proportion
        horizon = self.times(events + ahead) - self.times(events)
        return 1 + _scaled(draw, np.maximum(horizon * 2, 1))


def _scaled(draw: npt.NDArray[np.float64], below: Any) -> Numbers:
    """Whole numbers from 0 to below - 1 from numbers in [0, 1)."""
    result: Numbers = (draw * below).astype(np.int64)
    return result


def prices(draw: npt.NDArray[np.float64]) -> Numbers:
    """Cents from 100 to 100 million, evenly by order of magnitude."""
    result: Numbers = np.rint(np.power(10.0, draw * 6.0) * 100.0).astype(np.int64)
    return result
