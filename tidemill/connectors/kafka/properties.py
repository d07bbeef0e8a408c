"""Properties of Kafka's Java client as librdkafka's.

Most have the same names. Java keeps user and password in one text, certificates in its own stores, and has
properties that mean nothing to librdkafka.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidemill.connectors.kafka.options import PROPERTIES
from tidemill.errors import NotSupportedError, ValidationError

Properties = dict[str, str]

_JAAS = "sasl.jaas.config"
_LOGIN = re.compile(r"""(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")
_NO_MEANING = frozenset(
    {
        "key.deserializer",
        "value.deserializer",
        "key.serializer",
        "value.serializer",
        "max.poll.records",
        "partition.discovery.interval.ms",
        "client.id.prefix",
        "register.consumer.metrics",
        "commit.offsets.on.checkpoint",
        "ssl.endpoint.identification.algorithm",
        "enable.auto.commit",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "request.timeout.ms",
        "default.api.timeout.ms",
        "buffer.memory",
        "send.buffer.bytes",
        "receive.buffer.bytes",
        "max.block.ms",
    }
)
"""Read by us, or without a meaning here."""
_REFUSED = ("plugin.", "ssl.engine", "ssl.provider", "sasl.kerberos.kinit.cmd")
"""librdkafka's own, which run programs and libraries."""
_FILES = (".location", ".keytab", ".file")
"""How the names of properties end that name files."""
_RENAMED = {
    "sasl.mechanism": "sasl.mechanisms",
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
}
_CONSUMER = ("fetch.", "max.partition.fetch.bytes", "isolation.level", "group.", "session.", "heartbeat.")
_PRODUCER = (
    "acks",
    "batch.size",
    "linger.ms",
    "compression.",
    "transaction.",
    "enable.idempotence",
    "retries",
)


def given(options: Mapping[str, str]) -> Properties:
    """The properties in a table's options, under Kafka's names."""
    found = {k.removeprefix(PROPERTIES): v for k, v in options.items() if k.startswith(PROPERTIES)}
    if "bootstrap.servers" not in found:
        raise ValidationError(
            "One or more required options are missing.\n\nMissing required options are:\n\n"
            "properties.bootstrap.servers"
        )
    return found


def names_file(key: str) -> bool:
    """Whether the value of a table's option is a place of a file that the client reads."""
    return key.startswith(PROPERTIES) and key.endswith(_FILES)


def consumer(found: Properties) -> Properties:
    return _translated(found, _PRODUCER)


def producer(found: Properties) -> Properties:
    return _translated(found, _CONSUMER)


def admin(found: Properties) -> Properties:
    return _translated(found, (*_CONSUMER, *_PRODUCER))


def _translated(found: Properties, without: tuple[str, ...]) -> Properties:
    """All of ``found`` but those that mean nothing to this client."""
    _check_stores(found)
    refused = sorted(key for key in found if key.startswith(_REFUSED))
    if refused:
        raise NotSupportedError(f"'properties.{refused[0]}': libraries and programs of the Kafka client")
    made = {
        _RENAMED.get(key, key): value
        for key, value in found.items()
        if key not in _NO_MEANING and key != _JAAS and not key.startswith(without) and ".type" not in key
    }
    if _JAAS in found:
        made.update(_login(found[_JAAS]))
    if found.get("ssl.endpoint.identification.algorithm") == "":
        made["ssl.endpoint.identification.algorithm"] = "none"
    return made


def _check_stores(found: Properties) -> None:
    """Java's own key stores cannot be read without Java."""
    if "ssl.truststore.location" in found and found.get("ssl.truststore.type", "JKS").upper() != "PEM":
        raise NotSupportedError(
            "'properties.ssl.truststore.location' in the format JKS or PKCS12",
            hint="Export the certificates as PEM, and set 'properties.ssl.truststore.type' = 'PEM'.",
        )
    if "ssl.keystore.location" in found and found.get("ssl.keystore.type", "JKS").upper() != "PKCS12":
        raise NotSupportedError(
            "'properties.ssl.keystore.location' in a format other than PKCS12",
            hint="Set 'properties.ssl.keystore.type' = 'PKCS12', or give 'ssl.keystore.key' and"
            " 'ssl.keystore.certificate.chain' as PEM.",
        )


def _login(jaas: str) -> Properties:
    parts = {m[1]: m[2] if m[2] is not None else m[3] for m in _LOGIN.finditer(jaas)}
    if set(parts) != {"username", "password"}:
        raise NotSupportedError(
            "'properties.sasl.jaas.config' without username and password",
            hint="PLAIN and SCRAM are supported: PlainLoginModule, ScramLoginModule.",
        )
    unescaped = {key: re.sub(r"\\(.)", r"\1", value) for key, value in parts.items()}
    return {"sasl.username": unescaped["username"], "sasl.password": unescaped["password"]}
