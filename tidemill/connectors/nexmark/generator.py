"""Nexmark's persons, auctions and bids as Arrow columns, block by block.

A block's random numbers come from (seed, block), so the same seed gives the same events however the
stream is cut. Cost: about 0.5 µs an event for the bids, more for the texts of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.connectors.generated import BLOCK_ROWS, letters
from tidemill.connectors.nexmark import model as m
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type

_STATES = pa.array(["AZ", "CA", "ID", "OR", "WA", "WY"])
_CITIES = pa.array(
    [
        "Phoenix",
        "Los Angeles",
        "San Francisco",
        "Boise",
        "Portland",
        "Bend",
        "Redmond",
        "Seattle",
        "Kent",
        "Cheyenne",
    ]
)
_FIRST_NAMES = pa.array(
    ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
)
_LAST_NAMES = pa.array(
    ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"]
)
_HOT_CHANNELS = pa.array(["Google", "Facebook", "Baidu", "Apple"])
_CHANNELS = 10_000
_URL = "https://www.nexmark.com/"


@dataclass(frozen=True, slots=True)
class _Draw:
    """The random numbers of one kind of event within one block."""

    rng: np.random.Generator
    events: m.Numbers
    model: m.Model

    def uniform(self) -> npt.NDArray[np.float64]:
        return self.rng.random(len(self.events))

    def below(self, bound: int) -> m.Numbers:
        return self.rng.integers(0, bound, len(self.events))

    def pick(self, texts: pa.Array) -> pa.Array:
        return texts.take(pa.array(self.below(len(texts))))

    def word(self, longest: int) -> pa.Array:
        """3 to ``longest`` - 1 letters, as Nexmark's strings are."""
        return letters(self.rng, 3 + self.below(max(longest - 3, 1)))

    def fixed(self, length: int) -> pa.Array:
        return letters(self.rng, np.full(len(self.events), length, dtype=np.int64))

    def hot(self, ratio: int) -> npt.NDArray[np.bool_]:
        return self.below(ratio) > 0

    def extra(self, used: int, average: int) -> pa.Array:
        """Fills a record up to about ``average`` bytes, 20 % more or less."""
        missing = average - used
        if missing <= 0:
            return pa.array([""] * len(self.events))
        spread = round(missing * 0.2)
        lengths = missing - spread + self.below(2 * spread + 1)
        return letters(self.rng, lengths)

    def times(self) -> pa.Array:
        return _instants(self.model.times(self.events))


def _instants(millis: m.Numbers) -> pa.Array:
    return pa.array(millis * 1000).cast(pa.timestamp("us"))


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _persons(draw: _Draw) -> dict[str, pa.Array]:
    card = [pa.array(np.char.zfill(draw.below(10_000).astype(str), 4)) for _ in range(4)]
    return {
        "id": pa.array(draw.model.last_person(draw.events) + m.FIRST_PERSON_ID),
        "name": _joined(draw.pick(_FIRST_NAMES), " ", draw.pick(_LAST_NAMES)),
        "emailAddress": _joined(draw.word(7), "@", draw.word(5), ".com"),
        "creditCard": pc.binary_join_element_wise(*card, " "),
        "city": draw.pick(_CITIES),
        "state": draw.pick(_STATES),
        "dateTime": draw.times(),
        "extra": draw.extra(8 + 12 + 12 + 19 + 8 + 2 + 8, draw.model.person_size),
    }


def _auctions(draw: _Draw) -> dict[str, pa.Array]:
    model, events = draw.model, draw.events
    hot = draw.hot(model.hot_sellers)
    sellers = np.where(hot, model.hot_person(events), model.some_person(events, draw.uniform()))
    first = m.prices(draw.uniform())
    expires = model.times(events) + model.auction_length(events, draw.uniform())
    return {
        "id": pa.array(model.last_auction(events) + m.FIRST_AUCTION_ID),
        "itemName": draw.word(20),
        "description": draw.word(100),
        "initialBid": pa.array(first),
        "reserve": pa.array(first + m.prices(draw.uniform())),
        "dateTime": draw.times(),
        "expires": _instants(expires),
        "seller": pa.array(sellers + m.FIRST_PERSON_ID),
        "category": pa.array(m.FIRST_CATEGORY_ID + draw.below(m.NUM_CATEGORIES)),
        "extra": draw.extra(8 + 12 + 52 + 8 * 6, model.auction_size),
    }


def _bids(draw: _Draw) -> dict[str, pa.Array]:
    model, events = draw.model, draw.events
    auctions = np.where(
        draw.hot(model.hot_auctions), model.hot_auction(events), model.some_auction(events, draw.uniform())
    )
    bidders = np.where(
        draw.hot(model.hot_bidders), model.hot_person(events) + 1, model.some_person(events, draw.uniform())
    )
    channel, url = _channels(draw)
    return {
        "auction": pa.array(auctions + m.FIRST_AUCTION_ID),
        "bidder": pa.array(bidders + m.FIRST_PERSON_ID),
        "price": pa.array(m.prices(draw.uniform())),
        "channel": channel,
        "url": url,
        "dateTime": draw.times(),
        "extra": draw.extra(8 * 4, model.bid_size),
    }


def _channels(draw: _Draw) -> tuple[pa.Array, pa.Array]:
    """Half of the bids come from four hot channels; nine of ten others have a channel id in the URL."""
    hot = draw.below(2) > 0
    number = draw.below(_CHANNELS)
    named = _joined("channel-", pa.array(number).cast(pa.string()))
    channel = pc.if_else(pa.array(hot), draw.pick(_HOT_CHANNELS), named)
    path = [draw.fixed(5) for _ in range(3)]
    url = _joined(_URL, *_with_slashes(path), "/item.htm?query=1")
    tagged = pa.array(~hot & (draw.below(10) > 0))
    numbers = (number * 2_654_435_761) % (1 << 31)  # scattered, but the same for each channel
    tag = _joined(url, "&channel_id=", pa.array(numbers).cast(pa.string()))
    return channel, pc.if_else(tagged, tag, url)


def _with_slashes(parts: list[pa.Array]) -> list[pa.Array | str]:
    joined: list[pa.Array | str] = [parts[0]]
    for part in parts[1:]:
        joined += ["/", part]
    return joined


_MAKERS: dict[str, tuple[int, Callable[[_Draw], dict[str, pa.Array]]]] = {
    "person": (m.PERSON, _persons),
    "auction": (m.AUCTION, _auctions),
    "bid": (m.BID, _bids),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NexmarkGenerator:
    """``fields``: of event_type, person, auction and bid those that are asked for."""

    fields: tuple[Field, ...]
    model: m.Model
    seed: int

    def block(self, number: int, time: int) -> pa.Table:
        events = np.arange(number * BLOCK_ROWS, (number + 1) * BLOCK_ROWS, dtype=np.int64)
        kinds = self.model.kinds(events)
        columns = [self._column(f, number, events, kinds) for f in self.fields]
        return pa.Table.from_arrays(columns, names=[f.name for f in self.fields])

    def _column(self, field: Field, number: int, events: m.Numbers, kinds: npt.NDArray[np.int32]) -> pa.Array:
        if field.name == "event_type":
            return pa.array(kinds, pa.int32())
        kind, maker = _MAKERS[field.name]
        chosen = kinds == kind
        rng = np.random.Generator(np.random.Philox(key=[self.seed, number * 4 + kind]))
        made = maker(_Draw(rng, events[chosen], self.model))
        target = arrow_type(field.type)
        values = pa.StructArray.from_arrays(
            [made[child.name].cast(child.type) for child in target], fields=list(target)
        )
        places = np.cumsum(chosen) - 1
        return values.take(pa.array(places, mask=~chosen))
