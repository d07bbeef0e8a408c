"""Errors of librdkafka as errors of ours."""

from __future__ import annotations

import re
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException

from tidemill.errors import ConnectorError, ValidationError

_PROPERTY = re.compile(r'property[: ]+"?([\w.]+)"?')
_HINTS = {
    KafkaError._ALL_BROKERS_DOWN: "Is the broker running, and is 'properties.bootstrap.servers' right?",
    KafkaError._TRANSPORT: "Is the broker running, and is 'properties.bootstrap.servers' right?",
    KafkaError._TIMED_OUT: "Is the broker running, and is 'properties.bootstrap.servers' right?",
    KafkaError._AUTHENTICATION: "Check 'properties.sasl.jaas.config' and 'properties.sasl.mechanism'.",
    KafkaError._SSL: "Check 'properties.ssl.*' and 'properties.security.protocol'.",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "The user has no rights on the topic.",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "The user has no rights on the consumer group.",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "The user has no rights on the transactional id.",
}


_TIMES = 2


@dataclass(slots=True)
class Login:
    """The ``error_cb`` of a client. A client whose login is refused tries it for ever, and whoever asks it
    something learns only that no answer came; ``refused`` says why. To librdkafka a connection that is lost
    during a login is a refusal, too: one is not believed, and none after which a broker is away."""

    _last: KafkaError | None = None
    _times: int = 0

    def __call__(self, error: KafkaError) -> None:
        """Called by the client while it is polled."""
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            self._last, self._times = error, self._times + 1
        elif error.code() == KafkaError._TRANSPORT:
            self._times = 0

    @property
    def refused(self) -> KafkaError | None:
        return self._last if self._times >= _TIMES else None

    def forget(self) -> None:
        """What was refused before a question: the client has tried again since."""
        self._times = 0

    def failure(self, error: KafkaException, where: str) -> ConnectorError:
        return failure(error, where) if self.refused is None else told(self.refused, where)


def failure(error: KafkaException, where: str) -> ConnectorError:
    """``where``: what was asked."""
    return told(error.args[0], where)


def told(error: KafkaError, where: str) -> ConnectorError:
    return ConnectorError(f"{where}: {error.str()}", hint=_HINTS.get(error.code(), ""))


def refused_property(error: KafkaException) -> ValidationError:
    """A property that librdkafka does not have, or a value that it does not take."""
    text = error.args[0].str()
    found = _PROPERTY.search(text)
    named = f"'properties.{found[1]}'" if found else "The properties of the Kafka client"
    return ValidationError(f"{named}: {text}")
