"""The ``nexmark`` connector: the event stream of the Nexmark benchmark as one table.

The table has the columns event_type INT (0 person, 1 auction, 2 bid) and the ROWs person, auction and
bid, of which the one of the event's type is not NULL; ``nexmark.sql`` beside this file declares it
with the views person, auction and bid. Events are deterministic in (seed, options).
"""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.catalog.table import CatalogTable
from tidemill.connectors.api import Connector, ConnectorOption, SourceRequest
from tidemill.connectors.generated import GeneratedSource
from tidemill.connectors.nexmark.generator import NexmarkGenerator
from tidemill.connectors.nexmark.model import Model
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import Field, LogicalType

_OPTIONS = (
    ConnectorOption(key="events.num", kind="int", default="0", doc="Events in all; 0 has no end."),
    ConnectorOption(
        key="stop-at", kind="int", default="-1", doc="Events that are given of them; all if it is negative."
    ),
    ConnectorOption(
        key="keep-alive", kind="bool", default="false", doc="Wait after the last event instead of ending."
    ),
    ConnectorOption(
        key="first-event.rate", kind="int", least=1, default="10000", doc="Events per second of event time."
    ),
    ConnectorOption(
        key="next-event.rate", kind="int", default="10000", doc="Must equal first-event.rate here."
    ),
    ConnectorOption(
        key="rate.limited", kind="bool", default="false", doc="Give events no faster than their rate."
    ),
    ConnectorOption(
        key="max-emit-speed", kind="bool", default="true", doc="false is the same as rate.limited = true."
    ),
    ConnectorOption(key="rate.shape", default="SQUARE", choices=("SQUARE", "SINE"), doc="Accepted, unused."),
    ConnectorOption(key="rate.period", kind="duration", default="600 s", doc="Accepted, unused."),
    ConnectorOption(key="person.proportion", kind="int", least=1, default="1", doc="Persons in a round."),
    ConnectorOption(key="auction.proportion", kind="int", least=1, default="3", doc="Auctions in a round."),
    ConnectorOption(key="bid.proportion", kind="int", least=1, default="46", doc="Bids in a round."),
    ConnectorOption(key="person.avg-size", kind="memory", default="200 b", doc="Average bytes of a person."),
    ConnectorOption(
        key="auction.avg-size", kind="memory", default="500 b", doc="Average bytes of an auction."
    ),
    ConnectorOption(key="bid.avg-size", kind="memory", default="100 b", doc="Average bytes of a bid."),
    ConnectorOption(
        key="bid.hot-ratio.auctions",
        kind="int",
        least=1,
        default="2",
        doc="One in so many bids is on a cold auction.",
    ),
    ConnectorOption(
        key="bid.hot-ratio.bidders",
        kind="int",
        least=1,
        default="4",
        doc="One in so many bids is by a cold bidder.",
    ),
    ConnectorOption(
        key="auction.hot-ratio.sellers",
        kind="int",
        least=1,
        default="4",
        doc="One in so many has a cold seller.",
    ),
    ConnectorOption(
        key="base-time", kind="int", default="1436918400000", doc="Event time of the first event, in ms."
    ),
    ConnectorOption(key="seed", kind="int", default="0", doc="Another seed, other events."),
)
_TEXT = t.STRING
_TIME = t.TimestampType(precision=3)


def _row(**types: LogicalType) -> t.RowType:
    return t.RowType(fields=tuple(Field(name, kind) for name, kind in types.items()))


_COLUMNS: dict[str, LogicalType] = {
    "event_type": t.INT,
    "person": _row(
        id=t.BIGINT,
        name=_TEXT,
        emailAddress=_TEXT,
        creditCard=_TEXT,
        city=_TEXT,
        state=_TEXT,
        dateTime=_TIME,
        extra=_TEXT,
    ),
    "auction": _row(
        id=t.BIGINT,
        itemName=_TEXT,
        description=_TEXT,
        initialBid=t.BIGINT,
        reserve=t.BIGINT,
        dateTime=_TIME,
        expires=_TIME,
        seller=t.BIGINT,
        category=t.BIGINT,
        extra=_TEXT,
    ),
    "bid": _row(
        auction=t.BIGINT,
        bidder=t.BIGINT,
        price=t.BIGINT,
        channel=_TEXT,
        url=_TEXT,
        dateTime=_TIME,
        extra=_TEXT,
    ),
}


def generator(given: Mapping[str, str]) -> NexmarkGenerator:
    """All columns of the events that a table with these options has."""
    options = OptionValues(_OPTIONS, given)
    fields = tuple(Field(name, kind) for name, kind in _COLUMNS.items())
    return NexmarkGenerator(fields=fields, model=_model(options), seed=options["seed"])


class NexmarkConnector(Connector):
    identifier = "nexmark"
    options = _OPTIONS
    is_source = True

    def validate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        given = OptionValues(_OPTIONS, options)
        if given["first-event.rate"] != given["next-event.rate"]:
            raise NotSupportedError("Nexmark with a first-event.rate other than next-event.rate.")
        for column in table.physical_columns:
            if column.name not in _COLUMNS:
                raise ValidationError(
                    f"A nexmark table has no column '{column.name}'.", expected=tuple(_COLUMNS)
                )
            _check_type(column.name, column.type)

    def gives_arrow(self) -> bool:
        return True

    def source(self, request: SourceRequest) -> GeneratedSource:
        options = OptionValues(_OPTIONS, request.options)
        limited = request.streaming and (options["rate.limited"] or not options["max-emit-speed"])
        return GeneratedSource(
            generator=NexmarkGenerator(fields=request.fields, model=_model(options), seed=options["seed"]),
            count=_count(options),
            ends=not options["keep-alive"],
            rate=float(options["next-event.rate"]) if limited else None,
            sequence=request.sequence,
            parallelism=request.parallelism,
        )


def _count(options: OptionValues) -> int | None:
    limits = [options["events.num"]] if options["events.num"] else []
    limits += [options["stop-at"]] if options["stop-at"] >= 0 else []
    return min(limits, default=None)


def _check_type(name: str, kind: LogicalType) -> None:
    """The declared type may leave fields out, but the others must be of the event's types."""
    expected = _COLUMNS[name]
    have = {f.name: f.type for f in expected.fields} if isinstance(expected, t.RowType) else {}
    given = {f.name: f.type for f in kind.fields} if isinstance(kind, t.RowType) else {}
    same = type(kind) is type(expected) and all(type(have.get(n)) is type(k) for n, k in given.items())
    if not same:
        raise ValidationError(f"Column '{name}' of a nexmark table must be {expected}, not {kind}.")


def _model(options: OptionValues) -> Model:
    return Model(
        base_time=options["base-time"],
        rate=float(options["first-event.rate"]),
        person_proportion=options["person.proportion"],
        auction_proportion=options["auction.proportion"],
        bid_proportion=options["bid.proportion"],
        hot_auctions=options["bid.hot-ratio.auctions"],
        hot_bidders=options["bid.hot-ratio.bidders"],
        hot_sellers=options["auction.hot-ratio.sellers"],
        person_size=options["person.avg-size"].bytes,
        auction_size=options["auction.avg-size"].bytes,
        bid_size=options["bid.avg-size"].bytes,
    )


CONNECTOR = NexmarkConnector()
